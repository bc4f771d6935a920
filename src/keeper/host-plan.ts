import type { Delegation, HostedProtocol } from "../bridge/policy.ts";
import { commandSource } from "../config/load.ts";
import type { Config, PartialConfig } from "../config/types.ts";
import { ConfigError } from "../errors.ts";
import { type AgentRequest, chooseAgent, overrides, speechless } from "./agent.ts";
import { originOf } from "./origin.ts";
import type { PlannedSandbox } from "./planned.ts";
import { planWith } from "./sandbox.ts";

/** A plan for an agent that speaks a protocol with a client. */
export interface PlannedHost extends PlannedSandbox {
  readonly protocol: HostedProtocol;
  readonly delegation: Delegation;
  /** Whether nobody has chosen the protocol. */
  readonly isProtocolAssumed: boolean;
  /** Where the owner has moved the boundary of trust: to be told whatever else is not. */
  readonly trustChanges: readonly string[];
}

/** Plans a session for a hosted agent; starts nothing and changes nothing. */
export async function planHost({ agent, mode, args = [], ...options }: AgentRequest): Promise<PlannedHost> {
  if (mode === "podbot") throw notHosted();
  const config = { ...options.config, agent: overrides(agent, mode, args, options.config) };
  const planned = await planWith(
    { ...options, config, session: true },
    (loaded) => chooseAgent(loaded, args),
    hostedMode,
  );
  const { loaded } = planned;
  const { delegation } = loaded.config.acp;
  return {
    ...planned,
    protocol: loaded.config.agent.mode as HostedProtocol,
    delegation,
    isProtocolAssumed: loaded.layers.some(({ source }) => source === commandSource),
    trustChanges: delegation === "disabled" ? [] : [describe(delegation, originOf(loaded, "acp.delegation"))],
    warnings: [...planned.warnings, ...speechless(planned)],
  };
}

/** An editor's entry should be short, and nearly every agent speaks this one. */
function hostedMode({ agent }: Config): PartialConfig {
  return agent.mode === "podbot" ? { agent: { mode: "acp" } } : {};
}

const abilities: Readonly<Record<Exclude<Delegation, "disabled">, string>> = {
  allow_fs: "read and write files",
  allow_terminal: "run commands",
  allow_all: "read and write files, run commands and do all else that it offers",
};

function describe(delegation: Exclude<Delegation, "disabled">, origin: string): string {
  const what = `the agent may have its client ${abilities[delegation]} on the client's machine, outside the wall`;
  return `acp.delegation = "${delegation}" (${origin}): ${what}`;
}

function notHosted(): ConfigError {
  return new ConfigError("CONFIG_INVALID", 'agent.mode = "podbot" is not for `podbot host`.', {
    hint: "`podbot run` runs an agent on your terminal; here, use --agent-mode acp or codex_app_server.",
    details: { fields: ["agent.mode"] },
  });
}
