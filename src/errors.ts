/**
 * Every failure that Podbot can name: a code, the exit status that the command line gives it, and one sentence for
 * docs/errors.md, which is generated from this table. The heading of a code there is its own name.
 */
const table = {
  USAGE: { exit: 2, about: "The command line does not make sense." },
  CONFIG_INVALID: { exit: 2, about: "One or more configuration values are wrong. Every problem is listed." },
  CONFIG_UNREADABLE: { exit: 2, about: "A configuration file exists but cannot be read or parsed." },
  CONFIG_AMBIGUOUS: { exit: 2, about: "Two configuration files lie side by side, so neither is chosen." },
  CONFIG_NOT_FOUND: { exit: 2, about: "The configuration file that was named does not exist." },
  CONFIG_UNTRUSTED: {
    exit: 2,
    about: "The project's configuration asks for more than the owner has granted and has not been trusted.",
  },
  SECRET_MISSING: { exit: 2, about: "A `!secret` reference names a secret that is not defined or has no value." },
  PRESET_UNKNOWN: { exit: 2, about: "A preset was named that does not exist." },
  PATTERN_INVALID: { exit: 2, about: "A path pattern is not a valid glob." },
  PATH_REFUSED: { exit: 2, about: "A path rule or the working directory is one that the wall cannot honour." },
  COMMAND_RULE_INVALID: { exit: 2, about: "A command wrapper is not one of true, false, a preset or a script." },
  HOME_INVALID: { exit: 125, about: "The home directory is unset, missing or not a directory." },
  PLATFORM_UNSUPPORTED: { exit: 125, about: "Podbot's walls need Linux." },
  BWRAP_MISSING: { exit: 125, about: "bubblewrap is not installed, or not where it can be trusted." },
  BWRAP_TOO_OLD: { exit: 125, about: "The installed bubblewrap lacks an option that the wall needs." },
  NATIVE_MISSING: { exit: 125, about: "Podbot's own native programs are missing from its installation." },
  USERNS_REFUSED: { exit: 125, about: "This machine does not let Podbot create user namespaces." },
  NESTED: { exit: 125, about: "Podbot was started inside one of its own sandboxes." },
  GAP: { exit: 125, about: "This wall on this machine cannot enforce part of the plan, so nothing was started." },
  PATH_CHANGED: { exit: 125, about: "A path was swapped between the plan and the start." },
  WALL_FAILED: { exit: 125, about: "The wall could not be built; bubblewrap's own words are in the message." },
  DOCKER_SOCKET_MISSING: { exit: 125, about: "`--docker` was given, but there is no engine socket to mount." },
  FILESYSTEM: { exit: 125, about: "Reading or writing a file of Podbot's own failed." },
  COMMAND_NOT_FOUND: { exit: 127, about: "The command does not exist inside the sandbox." },
  COMMAND_NOT_EXECUTABLE: { exit: 126, about: "The command exists inside the sandbox but cannot be executed." },
  INTERNAL: { exit: 125, about: "A defect in Podbot itself. Please report it." },
} as const satisfies Record<string, { exit: number; about: string }>;

export type ErrorCode = keyof typeof table;

export const errorTable: Readonly<Record<ErrorCode, { readonly exit: number; readonly about: string }>> = table;

export interface ErrorOptions {
  /** The way out, in one sentence that the reader can act on. */
  readonly hint?: string;
  /** Plain data about the failure, printed with `--json`. Never holds a secret. */
  readonly details?: Readonly<Record<string, unknown>>;
  readonly cause?: unknown;
}

/** The one error that leaves the library. Subclasses name the family, `code` names the case. */
export class PodbotError extends Error {
  readonly code: ErrorCode;
  readonly hint: string | undefined;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.code = code;
    this.hint = options.hint;
    this.details = options.details ?? {};
  }

  /** The status with which the command line ends when this error reaches it. */
  get exitStatus(): number {
    return table[this.code].exit;
  }
}

export class UsageError extends PodbotError {}
export class ConfigError extends PodbotError {}
export class PolicyError extends PodbotError {}
export class MachineError extends PodbotError {}
export class WallError extends PodbotError {}
export class FilesystemError extends PodbotError {}
