import type { Plan } from "../plan/plan.ts";
import { corner } from "../plan/wrappers.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { quote } from "../wall/bubblewrap/script.ts";

/** A tree of a million files takes a few seconds. */
const longestMs = 60_000;

/**
 * Takes back what other users inside have left in the workspace. In a rootless container only root is the caller, who
 * could not even remove what belongs to another user there (an archive that was unpacked with its owners, say).
 */
export async function reclaim(sandbox: Sandbox, plan: Plan): Promise<readonly string[]> {
  if (plan.container?.reclaims !== true || plan.workspace !== "mounted") return [];
  const process = await sandbox.exec({
    argv: [`${corner}/reclaim`, plan.directory],
    cwd: "/",
    user: plan.container.user,
    timeoutMs: longestMs,
  });
  process.stdin.end();
  process.stdout.resume();
  process.stderr.resume();
  const { code } = await process.exited;
  if (code === 0) return [];
  return [
    `Some files in ${plan.cwd} may belong to a user of the container (taking them back ended with status ${code}). \`podman unshare find ${quote(plan.cwd)} ! -uid 0 -exec chown -h 0:0 {} +\` takes them back.`,
  ];
}
