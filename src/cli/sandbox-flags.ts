import { resolve } from "node:path";
import type { PartialConfig } from "../config/types.ts";
import { UsageError } from "../errors.ts";
import type { AgentRequest } from "../keeper/agent.ts";
import type { SandboxOptions } from "../keeper/request.ts";
import type { NetworkMode } from "../plan/request.ts";
import { allValues, lastValue, type Parsed } from "./command.ts";
import type { Io } from "./io.ts";
import { visibleLine } from "./visible.ts";

/** What the flags of `sandbox` and `run` ask for, but for the command. */
export function sandboxOptions(parsed: Parsed, io: Io): Omit<SandboxOptions, "command"> {
  const cwd = lastValue(parsed, "cwd") ?? lastValue(parsed, "workspace");
  const configFile = lastValue(parsed, "config");
  return {
    cwd: resolve(io.cwd, cwd ?? "."),
    cwdNamed: cwd !== undefined,
    ...(io.cwdIdentity === undefined || cwd !== undefined ? {} : { cwdIdentity: io.cwdIdentity }),
    env: io.env,
    config: overrides(parsed),
    docker: parsed.switches.has("docker"),
    dry: parsed.switches.has("dry-run"),
    ...(configFile === undefined ? {} : { configFile }),
    ...(parsed.switches.has("quiet") ? {} : { onLongPattern: (pattern) => sayLong(pattern, io) }),
  };
}

/** The process is at work and answers nothing meanwhile. */
function sayLong(pattern: string, io: Io): void {
  io.stderr.write(`podbot: reading all names that ${visibleLine(JSON.stringify(pattern))} may stand for\n`);
}

/** The same for an agent. */
export function agentRequest(parsed: Parsed, io: Io): AgentRequest {
  const agent = lastValue(parsed, "agent");
  const mode = lastValue(parsed, "agent-mode");
  const repository = lastValue(parsed, "repo");
  const branch = lastValue(parsed, "branch");
  return {
    ...sandboxOptions(parsed, io),
    args: parsed.rest,
    ...(agent === undefined ? {} : { agent }),
    ...(mode === undefined ? {} : { mode }),
    ...(repository === undefined ? {} : { repository }),
    ...(branch === undefined ? {} : { branch }),
    githubToken: parsed.switches.has("github-token"),
  };
}

function overrides(parsed: Parsed): PartialConfig {
  const network = lastValue(parsed, "network");
  const root = lastValue(parsed, "root");
  const wall = lastValue(parsed, "wall");
  const image = lastValue(parsed, "image");
  const engineSocket = lastValue(parsed, "engine-socket");
  const delegation = lastValue(parsed, "acp-delegation");
  const variables = allValues(parsed, "env").map((word) => splitPair(word, "--env"));
  return {
    filesystem: {
      presets: allValues(parsed, "preset"),
      ro: allValues(parsed, "ro"),
      rw: allValues(parsed, "rw"),
      exclude: allValues(parsed, "exclude"),
    },
    network: { ...(network === undefined ? {} : { mode: parseNetwork(network) }), domains: allValues(parsed, "allow") },
    ...(image === undefined ? {} : { image }),
    ...(engineSocket === undefined ? {} : { engine_socket: engineSocket }),
    sandbox: {
      ...(root === undefined ? {} : { root: parseRoot(root) }),
      ...(wall === undefined ? {} : { wall: parseWall(wall) }),
    },
    ...(delegation === undefined ? {} : { acp: { delegation: parseDelegation(delegation) } }),
    commands: parseCommands(allValues(parsed, "cmd")),
    environment: {
      pass: variables.flatMap(([name, value]) => (value === undefined ? [name] : [])),
      set: Object.fromEntries(
        variables.flatMap(([name, value]) =>
          value === undefined ? [] : [[name, { kind: "literal" as const, value }]],
        ),
      ),
    },
  };
}

function parseNetwork(word: string): NetworkMode {
  if (word === "false") return "none";
  if (word === "true") return "open";
  if (word === "none" || word === "allowlist" || word === "learn" || word === "open") return word;
  throw new UsageError("USAGE", `--network ${JSON.stringify(word)} is not a mode.`, {
    hint: "Use none, allowlist, learn or open.",
  });
}

function parseRoot(word: string): "host" | "minimal" {
  if (word === "host" || word === "minimal") return word;
  throw new UsageError("USAGE", `--root ${JSON.stringify(word)} is not a style.`, { hint: "Use host or minimal." });
}

function parseWall(word: string): "auto" | "bubblewrap" | "engine" {
  if (word === "auto" || word === "bubblewrap" || word === "engine") return word;
  throw new UsageError("USAGE", `--wall ${JSON.stringify(word)} is not a wall.`, {
    hint: "Use auto, bubblewrap or engine.",
  });
}

function parseDelegation(word: string): NonNullable<PartialConfig["acp"]>["delegation"] & string {
  if (word === "disabled" || word === "allow_fs" || word === "allow_terminal" || word === "allow_all") return word;
  throw new UsageError("USAGE", `--acp-delegation ${JSON.stringify(word)} is nothing that could be delegated.`, {
    hint: "Use disabled, allow_fs, allow_terminal or allow_all.",
  });
}

/** `K=V`, also several with commas between them. */
function parseCommands(words: readonly string[]): Record<string, boolean | string> {
  const rules: Record<string, boolean | string> = {};
  for (const word of words.flatMap((list) => list.split(","))) {
    const [name, value] = splitPair(word, "--cmd");
    if (value === undefined || value === "") {
      throw new UsageError("USAGE", `--cmd ${JSON.stringify(word)} says nothing.`, {
        hint: "Write NAME=false to block it, NAME=true to leave it alone, git=@git, or NAME=SCRIPT.",
      });
    }
    rules[name] = value === "true" ? true : value === "false" ? false : value;
  }
  return rules;
}

export function splitPair(word: string, flag: string): readonly [string, string | undefined] {
  const equals = word.indexOf("=");
  const name = equals < 0 ? word : word.slice(0, equals);
  // The value may be a secret, and is not repeated.
  if (name === "") throw new UsageError("USAGE", `${flag} has no name before the =.`);
  return [name, equals < 0 ? undefined : word.slice(equals + 1)];
}

const units = { "": 1_000, s: 1_000, m: 60_000, h: 3_600_000, ms: 1 } as const;

export function parseTime(word: string | undefined, flag = "timeout"): number | undefined {
  if (word === undefined) return undefined;
  const match = /^(\d+(?:\.\d+)?)(ms|[smh]?)$/.exec(word);
  const ms = match === null ? 0 : Number(match[1]) * units[match[2] as keyof typeof units];
  if (match !== null && (ms > 0 || flag === "time") && ms <= 0x7fffffff) return ms;
  throw new UsageError("USAGE", `--${flag} ${JSON.stringify(word)} is not a length of time.`, {
    hint: "Use 90s, 5m, 2h; a bare number is seconds.",
  });
}
