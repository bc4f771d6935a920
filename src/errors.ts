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
  SECRET_UNMASKABLE: {
    exit: 2,
    about: "A secret has `hosts`, but nothing can stand in for it: it is too short, or has several lines.",
  },
  PRESET_UNKNOWN: { exit: 2, about: "A preset was named that does not exist." },
  PATTERN_INVALID: {
    exit: 2,
    about: "A path pattern is not a valid glob, meets a name that is not UTF-8, or reads more than two million names.",
  },
  NETWORK_RULE_INVALID: {
    exit: 2,
    about: "A rule of the network names something that is no host, port, path or header.",
  },
  PATH_REFUSED: {
    exit: 2,
    about: "A path rule, the working directory or a repository is one that the wall cannot honour.",
  },
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
  WALL_FAILED: { exit: 125, about: "The wall could not be built; the words of whoever builds it are in the message." },
  DOORS_FAILED: {
    exit: 125,
    about: "The doors through which a sandbox reaches its gateway could not be opened, so nothing was started.",
  },
  DOCKER_SOCKET_MISSING: { exit: 125, about: "`--docker` was given, but there is no engine socket to mount." },
  FILESYSTEM: { exit: 125, about: "Reading or writing a file of Podbot's own failed." },
  COMMAND_NOT_FOUND: { exit: 127, about: "The command does not exist inside the sandbox." },
  COMMAND_NOT_EXECUTABLE: { exit: 126, about: "The command exists inside the sandbox but cannot be executed." },
  AGENT_UNKNOWN: { exit: 2, about: "An agent was named that Podbot does not know." },
  AGENT_MISSING: { exit: 127, about: "A known agent is not installed on this machine." },
  SESSION_NOT_FOUND: { exit: 125, about: "No session has this id." },
  SESSION_AMBIGUOUS: { exit: 2, about: "An abbreviated id fits more than one session." },
  SESSION_ENDED: { exit: 125, about: "The session has ended, so nothing can be started in it." },
  SESSION_UNREACHABLE: { exit: 125, about: "The session's keeper lives but cannot be talked to." },
  BOX_LOST: { exit: 125, about: "The sandbox ended while something was being done in it." },
  PROTOCOL: { exit: 125, about: "The other end of a connection sent something that makes no sense." },
  EXEC_FAILED: { exit: 125, about: "A process could not be started in a running sandbox." },
  UPLOAD_FAILED: { exit: 125, about: "Files could not be unpacked in the sandbox." },
  ENGINE_NOT_FOUND: { exit: 125, about: "No container engine answers. Every place that was tried is listed." },
  ENGINE_SOCKET_NOT_FOUND: { exit: 125, about: "The engine's socket does not exist." },
  ENGINE_PERMISSION_DENIED: { exit: 125, about: "The engine's socket may not be used by this user." },
  ENGINE_CONNECTION_FAILED: { exit: 125, about: "The engine cannot be reached, or the connection to it broke." },
  ENGINE_HEALTH_CHECK_FAILED: { exit: 125, about: "Something answers where the engine should be, but not as one." },
  ENGINE_HEALTH_CHECK_TIMEOUT: { exit: 125, about: "The engine accepts connections but does not answer." },
  ENGINE_REFUSED: { exit: 125, about: "The engine refused a request; its own words are in the message." },
  IMAGE_REQUIRED: { exit: 2, about: "The engine wall needs an image, and none is configured." },
  IMAGE_NOT_FOUND: { exit: 125, about: "The engine does not have the image." },
  IMAGE_BASE_MISSING: {
    exit: 125,
    about: "There is nothing to build the image on: no base was found, fetched or made.",
  },
  IMAGE_BUILD_FAILED: {
    exit: 125,
    about: "The image could not be built; the last words of the build are in the message.",
  },
  OCI_RUNTIME_MISSING: { exit: 125, about: "`sandbox.runtime` names a runtime that the engine does not have." },
  CONTAINER_CREATE_FAILED: { exit: 125, about: "The engine could not create the container." },
  CONTAINER_START_FAILED: { exit: 125, about: "The engine could not start the container." },
  GITHUB_CONFIG: {
    exit: 2,
    about: "A key that GitHub's tokens need is missing from the configuration, or makes no sense. All are listed.",
  },
  GITHUB_KEY_INVALID: {
    exit: 2,
    about: "The GitHub App's private key cannot be read, or is not an RSA key in PEM. The message says what it is.",
  },
  GITHUB_AUTHENTICATION: {
    exit: 125,
    about: "GitHub does not accept the App's signature: another App's key, a wrong id, or a clock that is wrong.",
  },
  GITHUB_FORBIDDEN: { exit: 125, about: "GitHub does not grant this to the App or to its installation." },
  GITHUB_RATE_LIMITED: { exit: 125, about: "GitHub wants fewer requests, and still does after some were tried again." },
  GITHUB_NOT_FOUND: {
    exit: 125,
    about: "GitHub knows no such App, installation or repository, or does not show it to this App.",
  },
  GITHUB_UNAVAILABLE: { exit: 125, about: "GitHub cannot be reached, or answers that it is out of order." },
  GITHUB_UNEXPECTED: {
    exit: 125,
    about:
      "GitHub answered something that Podbot does not understand, sent Podbot to another address, or gave a token that is not for what was asked for.",
  },
  GITHUB_TOKEN_EXPIRED: {
    exit: 125,
    about: "A token has expired, or had when it came: pushes and fetches fail until there is another.",
  },
  GITHUB_TOKEN_REFRESH: {
    exit: 125,
    about: "A token could not be replaced in time. It is tried again, and the old one is good until it expires.",
  },
  REPOSITORY_INVALID: { exit: 2, about: "What was named is no repository of GitHub's, or no branch that git allows." },
  CLONE_FAILED: {
    exit: 125,
    about: "The repository could not be cloned; git's own words are in the message. Nothing of the clone is left.",
  },
  MOUNT_REFUSED: { exit: 2, about: "A directory may not be mounted, or not where it was asked for." },
  RUNTIME_DIRECTORY: { exit: 125, about: "There is no directory that is safe for a session's sockets." },
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
export class SessionError extends PodbotError {}
export class EngineError extends PodbotError {}
export class GitHubError extends PodbotError {}
