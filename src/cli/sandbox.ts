import { existsSync, lstatSync, realpathSync } from "node:fs";
import { resolve } from "node:path";
import type { PartialConfig } from "../config/types.ts";
import { UsageError } from "../errors.ts";
import { type PlannedSandbox, planSandbox } from "../keeper/sandbox.ts";
import type { Operation } from "../plan/plan.ts";
import type { Exit } from "../wall/wall.ts";
import { allValues, lastValue, type Parsed } from "./command.ts";
import { explain } from "./explain.ts";
import type { Io } from "./io.ts";
import { painter } from "./paint.ts";
import { visible } from "./visible.ts";

/** `podbot sandbox`: one command behind bubblewrap, on the caller's own descriptors. */
export async function run(parsed: Parsed, io: Io): Promise<number> {
  const [program, ...args] = parsed.rest;
  if (program === undefined) {
    throw new UsageError("USAGE", "podbot sandbox: there is no command to run.", {
      hint: "For example: podbot sandbox -- npm test",
    });
  }
  const timeoutMs = parseTime(lastValue(parsed, "timeout"));
  const configFile = lastValue(parsed, "config");
  const planned = await planSandbox({
    command: [program, ...args],
    cwd: resolve(io.cwd, lastValue(parsed, "cwd") ?? "."),
    ...(io.cwdIdentity === undefined || lastValue(parsed, "cwd") !== undefined ? {} : { cwdIdentity: io.cwdIdentity }),
    env: io.env,
    config: overrides(parsed),
    docker: parsed.switches.has("docker"),
    ...(configFile === undefined ? {} : { configFile }),
  });
  if (parsed.switches.has("debug")) io.stderr.write(visible(explain(planned)));
  if (!parsed.switches.has("quiet")) warn(planned.warnings, io);
  if (parsed.switches.has("dry-run")) {
    io.stdout.write(parsed.switches.has("json") ? `${JSON.stringify(planned.plan, null, 2)}\n` : planned.script());
    return 0;
  }
  const exit = await runWithin(planned, timeoutMs, io);
  if (!parsed.switches.has("quiet")) warn(appeared(planned), io);
  return exit === "timeout" ? 124 : exit.code;
}

function overrides(parsed: Parsed): PartialConfig {
  const network = lastValue(parsed, "network");
  const root = lastValue(parsed, "root");
  const variables = allValues(parsed, "env").map((word) => splitPair(word, "--env"));
  return {
    filesystem: {
      presets: allValues(parsed, "preset"),
      ro: allValues(parsed, "ro"),
      rw: allValues(parsed, "rw"),
      exclude: allValues(parsed, "exclude"),
    },
    ...(network === undefined ? {} : { network: parseNetwork(network) }),
    ...(root === undefined ? {} : { sandbox: { root: parseRoot(root) } }),
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

function parseNetwork(word: string): { readonly mode: "none" | "open" } {
  if (word === "none" || word === "false") return { mode: "none" };
  if (word === "open" || word === "true") return { mode: "open" };
  throw new UsageError("USAGE", `--network ${JSON.stringify(word)} is not a mode of this version.`, {
    hint: "Use none or open.",
  });
}

function parseRoot(word: string): "host" | "minimal" {
  if (word === "host" || word === "minimal") return word;
  throw new UsageError("USAGE", `--root ${JSON.stringify(word)} is not a style.`, { hint: "Use host or minimal." });
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

function splitPair(word: string, flag: string): readonly [string, string | undefined] {
  const equals = word.indexOf("=");
  const name = equals < 0 ? word : word.slice(0, equals);
  if (name === "") throw new UsageError("USAGE", `${flag} ${JSON.stringify(word)} has no name before the =.`);
  return [name, equals < 0 ? undefined : word.slice(equals + 1)];
}

const units = { "": 1_000, s: 1_000, m: 60_000, h: 3_600_000, ms: 1 } as const;

export function parseTime(word: string | undefined): number | undefined {
  if (word === undefined) return undefined;
  const match = /^(\d+(?:\.\d+)?)(ms|[smh]?)$/.exec(word);
  const ms = match === null ? 0 : Number(match[1]) * units[match[2] as keyof typeof units];
  if (ms > 0 && ms <= 0x7fffffff) return ms;
  throw new UsageError("USAGE", `--timeout ${JSON.stringify(word)} is not a length of time.`, {
    hint: "Use 90s, 5m, 2h; a bare number is seconds.",
  });
}

async function runWithin(planned: PlannedSandbox, timeoutMs: number | undefined, io: Io): Promise<Exit | "timeout"> {
  const birth = { onSignal: io.onSignal };
  if (timeoutMs === undefined) return planned.run(io.descriptors, birth);
  const clock = new AbortController();
  const timer = setTimeout(() => clock.abort(), timeoutMs);
  try {
    const exit = await planned.run(io.descriptors, { ...birth, signal: clock.signal });
    return clock.signal.aborted ? "timeout" : exit;
  } finally {
    clearTimeout(timer);
  }
}

function warn(warnings: readonly string[], io: Io): void {
  if (warnings.length === 0) return;
  const paint = painter(io.stderr, io.env);
  for (const warning of warnings) io.stderr.write(`${paint("yellow", "podbot: warning:")} ${visible(warning)}\n`);
}

/** What the wall could not prevent, the owner is at least told. */
function appeared({ plan }: PlannedSandbox): readonly string[] {
  const created = plan.watched.filter((path) => existsSync(path));
  const swapped = plan.operations.filter((operation) => operation.kind === "bind" && isSwapped(operation));
  const replaced = Object.entries(plan.links).filter(([path, to]) => leadsTo(path) !== to);
  return [
    ...created.map(
      (path) => `${path} was created during the run; a rule would have protected it, had it existed. Review it.`,
    ),
    ...swapped.map(
      ({ target }) => `${target} was replaced outside during the run; from then on it was not protected. Review it.`,
    ),
    ...replaced.map(
      ([path]) => `${path} was a link to something protected and was replaced during the run. Review it.`,
    ),
  ];
}

/** A mount is lost when its place is taken by another file, as programs do that write by renaming. */
function isSwapped({ source, target, access, identity }: Extract<Operation, { kind: "bind" }>): boolean {
  if (access !== "ro" || source !== target || identity === null) return false;
  try {
    const stats = lstatSync(target);
    return `${stats.dev}:${stats.ino}` !== identity;
  } catch {
    return true;
  }
}

function leadsTo(path: string): string | null {
  try {
    return lstatSync(path).isSymbolicLink() ? realpathSync(path) : null;
  } catch {
    return null;
  }
}
