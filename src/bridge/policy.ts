import type { Decide } from "../decision.ts";

export type HostedProtocol = "acp" | "codex_app_server";

/** What of the client's machine a hosted agent may use through the client. */
export type Delegation = "disabled" | "allow_fs" | "allow_terminal" | "allow_all";

/** Where the same files lie, as the client sees them and as the agent does. */
export interface BridgePaths {
  readonly outside: string;
  readonly inside: string;
}

export interface BridgePolicy {
  readonly protocol: HostedProtocol;
  readonly delegation: Delegation;
  /** The longest line, without its end. Whatever is longer is dropped up to the next newline. */
  readonly maxFrameBytes: number;
  /** Null where both see the same paths. */
  readonly paths: BridgePaths | null;
  readonly decide?: Decide;
}

/** One message may carry a whole image or a large file; more than this is not a message any more. */
export const defaultMaxFrameBytes = 64 * 1024 * 1024;
