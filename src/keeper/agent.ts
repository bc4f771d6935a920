import { agentCommand, requireAgent, serverOf } from "../agents/command.ts";
import { knownAgent } from "../agents/table.ts";
import type { Config, PartialConfig } from "../config/types.ts";
import { ConfigError } from "../errors.ts";
import type { PlannedSandbox } from "./planned.ts";
import type { SessionWish } from "./request.ts";
import { type Chosen, planWith } from "./sandbox.ts";

/** Which agent to run, and from where. Everything else comes from the configuration. */
export interface AgentRequest extends Omit<SessionWish, "session"> {
  /** A known agent, or `custom`. Default: `agent.kind` of the configuration. */
  readonly agent?: string;
  /** Default: `agent.mode` of the configuration. */
  readonly mode?: string;
  /** Further arguments of a known agent; the whole command of a custom one. */
  readonly args?: readonly string[];
}

/** Plans a session for an agent; starts nothing and changes nothing. */
export async function planAgent({ agent, mode, args = [], ...options }: AgentRequest): Promise<PlannedSandbox> {
  const config = { ...options.config, agent: overrides(agent, mode, args, options.config) };
  const planned = await planWith({ ...options, config, session: true }, (loaded) => {
    if (loaded.agent.mode !== "podbot") throw hostedOnly(loaded.agent);
    return chooseAgent(loaded, args);
  });
  return { ...planned, warnings: [...planned.warnings, ...speechless(planned)] };
}

/** An agent without its model can do nothing but say so, and each says it in words of its own. */
export function speechless({ agent, plan }: PlannedSandbox): readonly string[] {
  const known = knownAgent(agent);
  if (known === undefined || plan.network.mode !== "none") return [];
  return [`${known.title} cannot reach its model: the network is off. --network allowlist lets it out to that.`];
}

/** A custom agent's command is part of the configuration, and may come from here. */
export function overrides(
  agent: string | undefined,
  mode: string | undefined,
  [command]: readonly string[],
  given: PartialConfig | undefined,
): NonNullable<PartialConfig["agent"]> {
  // Said here, an unknown name is a slip of the caller's and not a fault of some file.
  if (agent !== undefined && agent !== "custom") requireAgent(agent);
  return {
    ...given?.agent,
    ...(agent === undefined ? {} : { kind: agent as Config["agent"]["kind"] }),
    ...(mode === undefined ? {} : { mode: mode as Config["agent"]["mode"] }),
    ...(agent === "custom" && command !== undefined ? { command } : {}),
  };
}

/** What is started for an agent in its mode. */
export function chooseAgent({ agent }: Config, extra: readonly string[]): Chosen {
  // Given here, the command is given whole: arguments of another one in a file are not meant for it.
  const given = agent.kind === "custom" && extra.length > 0;
  const chosen = agentCommand({
    kind: agent.kind,
    form: agent.mode,
    command: given ? undefined : agent.command,
    args: given ? [] : agent.args,
    extra,
    permissive: agent.permissive,
  });
  const known = knownAgent(agent.kind);
  return known === undefined ? chosen : { ...chosen, agent: known, server: serverOf(known, agent.mode) };
}

/** A server of a protocol, started on a terminal, would wait for frames that nobody sends. */
function hostedOnly({ kind, mode }: Config["agent"]): ConfigError {
  return new ConfigError(
    "CONFIG_INVALID",
    `agent.mode = "${mode}" (agent.kind = "${kind}") is not for \`podbot run\`.`,
    {
      hint: "`podbot host` speaks that protocol with a client; `podbot run --agent-mode podbot` runs the agent itself.",
      details: { fields: ["agent.kind", "agent.mode"] },
    },
  );
}
