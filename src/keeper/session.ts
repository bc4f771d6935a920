import type { Plan } from "../plan/plan.ts";
import type { Process, Sandbox, Size, TerminalProcess } from "../sandbox/sandbox.ts";
import type { SessionId } from "../wall/wall.ts";
import type { Furnishing } from "./furnish.ts";
import type { OnAsked } from "./outside.ts";

/** What has just been done, in the order in which it is done. */
export type SessionStep =
  | "recorded"
  | "directory-made"
  | "listening"
  | "box-started"
  | "running"
  | "agent-started"
  | "agent-ended"
  | "box-ended"
  | "end-recorded"
  | "directory-removed"
  | "removed";

export interface SessionOptions {
  /** Whether it is left to itself: then its record and its log stay until it is stopped. Default: false. */
  readonly detached?: boolean;
  /**
   * Whether this process is there for the session alone, so that `podbot stop` may end it where nothing else helps.
   * Default: false.
   */
  readonly dedicated?: boolean;
  readonly onStep?: (step: SessionStep) => void;
  /** Called with what was done for a container before its agent starts. */
  readonly onFurnished?: (done: Furnishing) => void;
  /** Called with each thing that is asked for at the box's doors. */
  readonly onAsked?: OnAsked;
  /** Aborted while the session starts, it is not started. */
  readonly signal?: AbortSignal;
}

/** How the plan's command is to run. */
export interface AgentOptions {
  readonly timeoutMs?: number;
  /** Ends the command when aborted. */
  readonly signal?: AbortSignal;
  /** What of its output is kept for `podbot logs`. Default: all. */
  readonly log?: "all" | "errors";
}

/** One sandbox and all that lives outside for it, owned by this process. */
export interface Session extends AsyncDisposable {
  readonly id: SessionId;
  readonly plan: Plan;
  readonly warnings: readonly string[];
  readonly sandbox: Sandbox;
  /** Starts the plan's command; what it prints is kept for `podbot logs`. */
  run(options?: AgentOptions): Promise<Process>;
  run(options: AgentOptions, terminal: Size): Promise<TerminalProcess>;
  /** Writes something down in the session's journal, and for `podbot logs`. */
  note(text: string): void;
  /** Whether `stop` was called, here or by `podbot stop`. */
  readonly isStopped: boolean;
  /** Asks what runs inside to end, ends it, and removes what is left. */
  stop(graceMs?: number): Promise<void>;
  /** Resolves when nothing of the session is left but, where it was detached, its record and its log. */
  readonly ended: Promise<void>;
}

/** A session whose box is there, and whose agent is not. */
export interface PreparedSession extends AsyncDisposable {
  /** Whether its box still waits. */
  isReady(): boolean;
  /** Makes it the taker's own. Once. */
  handOut(options?: Omit<SessionOptions, "onStep" | "signal">): Session;
}
