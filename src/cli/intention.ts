import type { Agent } from "../agents/agent.ts";
import { knownAgent } from "../agents/table.ts";
import type { Config } from "../config/types.ts";
import type { PlannedSandbox } from "../keeper/planned.ts";
import type { Plan } from "../plan/plan.ts";
import { matchesHost } from "../policy/hosts.ts";
import type { Io } from "./io.ts";
import { visibleLine } from "./visible.ts";

/** Says what is about to happen, and which directory is given away. */
export function announce(planned: PlannedSandbox, io: Io): void {
  for (const line of intentions(planned, io)) io.stderr.write(`podbot: ${visibleLine(line)}\n`);
}

function intentions({ agent, plan, loaded }: PlannedSandbox, { cwd }: Pick<Io, "cwd">): readonly string[] {
  const known = knownAgent(agent);
  // Of a command of the caller's own, he knows; and behind bubblewrap all is where it is, unless a file has chosen it.
  const isElsewhere = loaded.config.workspace.source === "host_mount" && plan.cwd !== cwd;
  const isTold = plan.workspace === "mounted" && (plan.container !== null || isElsewhere);
  return [
    ...(known === undefined ? [] : [`${known.title} works on ${workOf(plan)} ${placeOf(plan)}, ${networkOf(plan)}`]),
    ...(isTold ? [`${plan.cwd} is mounted at ${plan.directory}, read-write`] : []),
    ...(known === undefined ? [] : openHosts(known, plan, loaded.config.creds.mode)),
  ];
}

/** Where the agent's own hosts are open and no secret is bound to them, the gateway does not see whose key it uses there. */
function openHosts({ hosts }: Agent, { network: { policy } }: Plan, creds: Config["creds"]["mode"]): readonly string[] {
  if (policy === null || policy.learn || creds === "masked") return [];
  const isBound = (host: string) =>
    policy.secrets.some((secret) => secret.hosts.some((pattern) => matchesHost(pattern, host)));
  const open = hosts.filter((host) => !isBound(host));
  if (open.length === 0) return [];
  return [`any key is let through to ${open.join(", ")}, another account's too; creds.mode = "masked" takes those out`];
}

function workOf({ workspace, clone, cwd }: Plan): string {
  if (clone !== null) return `a clone of ${clone.repository}, ${clone.branch},`;
  return workspace === "empty" ? "an empty directory" : cwd;
}

function placeOf({ container }: Plan): string {
  if (container === null) return "behind bubblewrap";
  const { flavour, rootless, image } = container.engine;
  return `in a container of ${image.name} (${rootless ? "rootless " : ""}${flavour})`;
}

function networkOf({ network: { mode, policy } }: Plan): string {
  if (mode === "none") return "without network";
  if (policy === null) return "with the machine's network";
  const hosts = new Set(policy.rules.filter(({ deny }) => !deny).map(({ host }) => host)).size;
  return policy.learn ? "and what it reaches is noted" : `with ${hosts} host${hosts === 1 ? "" : "s"} in reach`;
}
