import type { Io } from "./io.ts";

/** One flag of a command: enough to parse it, to explain it and to complete it. */
export interface Flag {
  readonly name: string;
  readonly short?: string;
  /** What the value is called in help; a flag without one is a switch. */
  readonly value?: string;
  /** All that the value can be, where that is a closed list. */
  readonly choices?: readonly string[];
  readonly repeatable?: boolean;
  readonly about: string;
}

export interface Command {
  readonly name: string;
  readonly summary: string;
  readonly usage: string;
  readonly flags: readonly Flag[];
  /** Whether the first word that is not a flag begins a foreign command line. */
  readonly takesCommand?: boolean;
  /** Names for positional words, in order; none may be left out unless it ends in `?`. */
  readonly words?: readonly string[];
  /** What the first word is, where a shell can ask for those that exist. */
  readonly completes?: "session";
  readonly examples: readonly (readonly [command: string, about: string])[];
  /** Loaded only when the command is used. */
  readonly load: () => Promise<{ readonly run: (parsed: Parsed, io: Io) => Promise<number> }>;
}

/** A command line, understood. */
export interface Parsed {
  readonly command: string;
  readonly switches: ReadonlySet<string>;
  readonly values: ReadonlyMap<string, readonly string[]>;
  readonly words: readonly string[];
  readonly rest: readonly string[];
}

/** The last value of a flag, since later ones override. */
export function lastValue(parsed: Parsed, name: string): string | undefined {
  return parsed.values.get(name)?.at(-1);
}

export function allValues(parsed: Parsed, name: string): readonly string[] {
  return parsed.values.get(name) ?? [];
}
