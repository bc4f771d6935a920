import { ConfigError, UsageError } from "../errors.ts";
import type { Agent, AgentPackage, AgentServer, Permissive } from "./agent.ts";
import { agents, knownAgent } from "./table.ts";

/** `podbot`: itself, for people. The others are protocols that it serves on standard input and output. */
export type AgentForm = "podbot" | "codex_app_server" | "acp";

export interface AgentChoice {
  /** A known agent, or `custom`. */
  readonly kind: string;
  /** Default: `podbot`. */
  readonly form?: AgentForm;
  /** Program and arguments of a custom agent, as configured; the known agents have their own. */
  readonly command: string | undefined;
  readonly args: readonly string[];
  /** Words of the caller: further arguments, or a custom agent's whole command where none is configured. */
  readonly extra: readonly string[];
  /** Whether a known agent is told to ask nothing; as a server, to confine nothing. */
  readonly permissive: boolean;
}

/** A program and its arguments. */
type Argv = readonly [program: string, ...args: string[]];

export interface AgentCommand {
  readonly name: string;
  readonly argv: Argv;
}

/** What is to be started for an agent. Whether it exists is not asked here. */
export function agentCommand({ kind, form = "podbot", command, args, extra, permissive }: AgentChoice): AgentCommand {
  if (kind === "custom") return { name: kind, argv: customCommand(command, args, extra, form) };
  const agent = requireAgent(kind);
  const server = serverOf(agent, form);
  if (server !== null) return { name: kind, argv: serverCommand(agent, server, extra, permissive) };
  const words = extra.length === 0 ? agent.interactive : extra;
  const told = permissive ? withFlags(agent.permissive, words) : words;
  return { name: kind, argv: [agent.program, ...agent.quiet.flags, ...told] };
}

/** Throws where Podbot does not know it. */
export function requireAgent(name: string): Agent {
  const agent = knownAgent(name);
  if (agent === undefined) throw unknownAgent(name);
  return agent;
}

/** What an agent is as a server; null where it is run itself. That it has no such form, the configuration has refused. */
export function serverOf({ acp, appServer }: Agent, form: AgentForm): AgentServer | null {
  if (form === "podbot") return null;
  return form === "acp" ? acp : appServer;
}

/** What installs an agent, or its server, here: the version that was tried. */
export function installCommand({ package: { name, version } }: { readonly package: AgentPackage }): string {
  return `npm install --global ${name}@${version}`;
}

/** What the agent's own program is told in any case holds for it as a server, too; an adapter knows other words. */
function serverCommand({ quiet }: Agent, server: AgentServer, extra: readonly string[], permissive: boolean): Argv {
  const { program, args, unconfined } = server;
  const flags = [...(server.package === null ? quiet.flags : []), ...(permissive ? unconfined.flags : [])];
  return [program, ...flags, ...args, ...extra];
}

/** Whatever the caller has said himself stays as it is. */
function withFlags({ flags, decided, behind, without }: Permissive, words: readonly string[]): readonly string[] {
  const [first, ...rest] = words;
  if (first !== undefined && without.includes(first)) return words;
  if (words.some((word) => decided.includes(word.replace(/=.*$/s, "")))) return words;
  const missing = flags.filter((flag) => !words.includes(flag));
  return first !== undefined && behind.includes(first) ? [first, ...missing, ...rest] : [...missing, ...words];
}

function customCommand(
  command: string | undefined,
  args: readonly string[],
  extra: readonly string[],
  form: AgentForm,
): Argv {
  if (command !== undefined) return [command, ...args, ...extra];
  const [program, ...rest] = extra;
  if (program !== undefined) return [program, ...rest];
  throw new UsageError("USAGE", "A custom agent needs a command, and none is given or configured.", {
    hint: `Name one: \`podbot ${form === "podbot" ? "run" : "host"} --agent custom -- COMMAND\`, or agent.command in the configuration.`,
  });
}

function unknownAgent(name: string): ConfigError {
  const known = agents.map((agent) => agent.name);
  return new ConfigError("AGENT_UNKNOWN", `Podbot does not know an agent ${JSON.stringify(name)}.`, {
    hint: `It knows ${known.join(", ")}; any other command: \`podbot run --agent custom -- COMMAND\`.`,
    details: { agent: name, known },
  });
}
