import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { packDirectories } from "../credentials/directories.ts";
import { type GitIdentity, gitIdentityCommands, readGitIdentity } from "../credentials/git-identity.ts";
import { packMaskedCredentials } from "../credentials/masked.ts";
import { type PackedCredentials, packCredentials } from "../credentials/pack.ts";
import { packUser } from "../credentials/passwd.ts";
import { PodbotError } from "../errors.ts";
import { followWay } from "../machine/owners-file.ts";
import { findOnPath, systemPath } from "../machine/programs.ts";
import { isWritableInside } from "../plan/access.ts";
import type { ContainerPlan } from "../plan/container.ts";
import type { Plan } from "../plan/plan.ts";
import type { ClonePlan } from "../plan/request.ts";
import { trustPlaces } from "../policy/trust-variables.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { BoxFiles } from "../wall/wall.ts";
import type { MaskTokens } from "./masked-credentials.ts";

/** What was done for a container before its agent started, for the owner to read. */
export type Furnishing =
  | { readonly kind: "credentials-copied"; readonly paths: readonly string[] }
  | { readonly kind: "cloning"; readonly clone: ClonePlan }
  | { readonly kind: "cloned"; readonly clone: ClonePlan }
  | { readonly kind: "warning"; readonly text: string };

/** Whose container it is. */
export interface ContainerOwner {
  readonly home: string;
  readonly signal?: AbortSignal;
  /** Where tokens are masked, how. Default: credentials are copied as they are. */
  readonly maskTokens?: MaskTokens | null;
}

/** Puts a home, an empty workspace and credentials into a container that has not started yet; returns their paths. */
export async function furnish(
  files: BoxFiles,
  plan: Plan,
  container: ContainerPlan,
  owner: ContainerOwner,
  report: (done: Furnishing) => void,
): Promise<readonly string[]> {
  const { user } = container;
  if (user.uid !== 0 && !container.readOnlyRoot) await listUser(files, plan, user);
  const directories = [
    ...(user.uid === 0 ? [] : [plan.home]),
    ...(plan.workspace === "mounted" ? [] : [plan.directory]),
  ];
  // With a read-only root they are there already.
  if (directories.length > 0 && !container.readOnlyRoot) {
    await files.put(Readable.from(packDirectories(directories, user)), "/");
  }
  const { paths, archive } = await packFor(plan, container, owner, report);
  // Nothing to copy: the engine is not even asked.
  if (archive === null) return [];
  await files.put(archive, plan.home);
  report({ kind: "credentials-copied", paths });
  return paths;
}

/**
 * Says which of the paths are not there for programs inside. An engine unpacks before there are any mounts: where the
 * image's home is a link to a place that a mount covers, its copies lie below the mount.
 */
export async function findCopies(
  sandbox: Sandbox,
  paths: readonly string[],
  report: (done: Furnishing) => void,
): Promise<void> {
  if (paths.length === 0) return;
  const script = `for path; do [ -e "$path" ] || [ -L "$path" ] || printf '%s\\n' "$path"; done`;
  try {
    const process = await sandbox.exec({ argv: ["sh", "-c", script, "sh", ...paths], cwd: "/" });
    process.stdin.end();
    process.stderr.resume();
    const [missing] = await Promise.all([text(process.stdout), process.exited]);
    if (missing === "") return;
    const names = missing.trimEnd().replaceAll("\n", ", ");
    report({
      kind: "warning",
      text: `What was copied to the container cannot be found inside: ${names}. A mount covers the place, or the image's home is a link to one that is covered.`,
    });
  } catch (error) {
    if (!(error instanceof PodbotError) || error.code !== "COMMAND_NOT_FOUND") throw error;
  }
}

async function packFor(
  plan: Plan,
  container: ContainerPlan,
  { home, signal, maskTokens = null }: ContainerOwner,
  report: (done: Furnishing) => void,
): Promise<PackedCredentials> {
  const request = { home, names: container.credentials, target: plan.home, owner: container.user };
  if (maskTokens === null) return packCredentials({ ...request, ...(signal === undefined ? {} : { signal }) });
  const { warnings, ...packed } = packMaskedCredentials({ ...request, mask: maskTokens });
  for (const each of warnings) report({ kind: "warning", text: each });
  return packed;
}

/** Docker does not do this by itself, and Podman does it only later. */
async function listUser(files: BoxFiles, { home }: Plan, user: ContainerPlan["user"]): Promise<void> {
  const list = await files.get("/etc/passwd");
  if (list === null) return;
  const archive = await packUser(list, { ...user, name: "podbot", home });
  if (archive !== null) await files.put(Readable.from([archive]), "/");
}

/** As whom the owner commits; null where there is no git to ask. */
export async function ownIdentity(
  plan: Plan,
  env: Readonly<Record<string, string | undefined>>,
): Promise<GitIdentity | null> {
  const git = findOnPath("git", systemPath(env["PATH"] ?? ""));
  // One that the agent can write would be executed out here.
  if (git === null || followWay(git, (path) => isWritableInside(plan, path)).kind !== "owners") return null;
  return readGitIdentity({ git, env });
}

/** Where images keep whom they trust: Debian and its like, Fedora and its like. */
const rootsInImages = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"] as const;

/**
 * For programs that go by the image's own list: the session's authority is added to it. By a command in the container,
 * since an engine takes longer for two archives than for all the rest of a start. Where there is no shell, or nothing
 * can be written, variables alone tell whom to trust.
 */
export async function addAuthority(sandbox: Sandbox, { network }: Plan): Promise<void> {
  if (network.policy === null) return;
  const script = `for list; do [ ! -w "$list" ] || cat ${trustPlaces.authority} >>"$list"; done`;
  try {
    const process = await sandbox.exec({ argv: ["sh", "-c", script, "sh", ...rootsInImages], cwd: "/" });
    process.stdin.end();
    process.stdout.resume();
    process.stderr.resume();
    await process.exited;
  } catch (error) {
    if (!(error instanceof PodbotError) || error.code !== "COMMAND_NOT_FOUND") throw error;
  }
}

/** Tells git inside who commits. Without git, or without a name on the host, it is only said. */
export async function introduce(
  sandbox: Sandbox,
  identity: GitIdentity | null,
  report: (done: Furnishing) => void,
): Promise<void> {
  if (identity === null) return;
  for (const each of identity.warnings) report({ kind: "warning", text: each });
  for (const argv of gitIdentityCommands(identity)) {
    try {
      const process = await sandbox.exec({ argv: argv as readonly [string, ...string[]], cwd: "/" });
      process.stdin.end();
      process.stdout.resume();
      process.stderr.resume();
      const { code } = await process.exited;
      if (code === 0) continue;
      report({
        kind: "warning",
        text: `\`${argv.slice(0, -1).join(" ")}\` failed in the container with status ${code}.`,
      });
    } catch (error) {
      if (!(error instanceof PodbotError) || error.code !== "COMMAND_NOT_FOUND") throw error;
      return;
    }
  }
}
