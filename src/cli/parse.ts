import { nearestName } from "../config/nearest.ts";
import { UsageError } from "../errors.ts";
import type { Command, Flag, Parsed } from "./command.ts";

/** Reads the words after a command's name. */
export function parseArguments(command: Command, argv: readonly string[]): Parsed {
  const switches = new Set<string>();
  const values = new Map<string, string[]>();
  const words: string[] = [];
  for (let at = 0; at < argv.length; at++) {
    const word = argv[at] as string;
    if (word === "--") return finish(command, { switches, values, words, rest: argv.slice(at + 1) });
    if (!word.startsWith("-") || word === "-") {
      if (command.takesCommand && words.length === (command.words ?? []).length)
        return finish(command, { switches, values, words, rest: argv.slice(at) });
      words.push(word);
      continue;
    }
    const { flag, attached } = readFlag(command, word);
    if (flag.value === undefined) {
      if (attached !== undefined) throw usage(command, `--${flag.name} takes no value`);
      switches.add(flag.name);
      continue;
    }
    const value = attached ?? argv[++at];
    if (value === undefined) throw usage(command, `--${flag.name} needs a value: ${flag.value}`);
    values.set(flag.name, [...(values.get(flag.name) ?? []), value]);
  }
  return finish(command, { switches, values, words, rest: [] });
}

function readFlag(command: Command, word: string): { readonly flag: Flag; readonly attached: string | undefined } {
  const long = /^--([^=]+)(?:=([\s\S]*))?$/.exec(word);
  const flag = command.flags.find(({ name, short }) => (long ? name === long[1] : short === word[1]));
  if (flag === undefined) throw unknownFlag(command, word);
  if (long) return { flag, attached: long[2] };
  const attached = word.length > 2 ? word.slice(2) : undefined;
  if (flag.value === undefined && attached !== undefined) throw unknownFlag(command, word);
  return { flag, attached };
}

function finish(command: Command, parsed: Omit<Parsed, "command">): Parsed {
  const expected = command.words ?? [];
  const most = expected.at(-1)?.endsWith("…?") ? Infinity : expected.length;
  if (!parsed.switches.has("help")) {
    const extra = command.takesCommand ? undefined : (parsed.words[most] ?? parsed.rest[0]);
    if (extra !== undefined) throw usage(command, `${JSON.stringify(extra)} is one word too many`);
    const missing = expected[parsed.words.length];
    if (missing !== undefined && !missing.endsWith("?")) throw usage(command, `${missing.toUpperCase()} is missing`);
  }
  return { command: command.name, ...parsed };
}

function unknownFlag(command: Command, word: string): UsageError {
  const names = command.flags.map(({ name }) => `--${name}`);
  const near = nearestName(word.replace(/=.*$/s, ""), names);
  return usage(
    command,
    `there is no flag ${word.replace(/=.*$/s, "")}`,
    near === undefined ? undefined : `Did you mean ${near}?`,
  );
}

function usage(command: Command, problem: string, hint?: string): UsageError {
  return new UsageError("USAGE", `podbot ${command.name}: ${problem}.`, {
    hint: [hint, `Usage: ${command.usage}; \`podbot ${command.name} --help\` explains.`].filter(Boolean).join(" "),
  });
}
