import { serverOf } from "../agents/command.ts";
import { knownAgent } from "../agents/table.ts";
import type { Config } from "../config/types.ts";

/**
 * Whether a known agent is told to ask nothing: on a terminal the wall is the boundary. Whoever speaks a protocol with
 * it answers its questions, too.
 */
function isPermissive({ permissive, mode }: Config["agent"]): boolean {
  return permissive && mode === "podbot";
}

/** Variables that a known agent gets, unless the owner says otherwise. */
export function agentEnvironment({ agent }: Config): Readonly<Record<string, string>> {
  const known = knownAgent(agent.kind);
  if (known === undefined) return {};
  const server = serverOf(known, agent.mode);
  return {
    ...known.quiet.environment,
    ...server?.environment,
    ...(agent.permissive ? server?.unconfined.environment : {}),
    ...(isPermissive(agent) ? known.permissive.environment : {}),
  };
}

/** What of the caller's home an agent finds in a container's: its own, and of a custom one nothing is known. */
export function agentCredentials({ agent, creds }: Config): readonly string[] {
  const known = knownAgent(agent.kind);
  if (known === undefined) {
    return [...(creds.copy_claude ? [".claude"] : []), ...(creds.copy_codex ? [".codex"] : [])];
  }
  return mayCopy(known.name, creds) ? known.credentials : [];
}

/** The first two had their keys before there were others. */
function mayCopy(agent: string, { copy_claude, copy_codex, copy_agent }: Config["creds"]): boolean {
  if (agent === "claude") return copy_claude;
  return agent === "codex" ? copy_codex : copy_agent;
}
