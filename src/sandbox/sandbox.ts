import type { Duplex, Readable, Writable } from "node:stream";
import type { Exit, SessionId } from "../wall/wall.ts";

/** A way to the warden: the box itself, or the keeper that owns it. */
export interface Connector {
  readonly id: SessionId;
  /** One stream to the warden, for one process, past the hello. */
  connect(signal?: AbortSignal): Promise<Duplex>;
}

export interface Command {
  readonly argv: readonly [string, ...string[]];
  /** Default: the sandbox's own working directory. */
  readonly cwd?: string;
  /** Variables to set or, with null, to unset; all others are the sandbox's own. */
  readonly env?: Readonly<Record<string, string | null>>;
  readonly user?: { readonly uid: number; readonly gid: number };
  /** Ends the process group after so long; its exit code is then 124. */
  readonly timeoutMs?: number;
  /** Ends the process group when aborted. */
  readonly signal?: AbortSignal;
  /** Is shown every piece of output as it comes, before whoever reads the streams. */
  readonly watch?: (stream: "stdout" | "stderr", bytes: Buffer) => void;
  /** How long a group that was asked to end may take before it is killed. Default: 5,000. */
  readonly graceMs?: number;
}

/** Of a terminal, in characters. */
export interface Size {
  readonly rows: number;
  readonly columns: number;
}

export interface Process {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Sends a signal to the whole process group. Does nothing once the process has ended. */
  kill(signal: NodeJS.Signals): void;
  /**
   * Asks the group to end, kills it when the grace period is over, and does not wait for it for ever: `exited` then
   * resolves all the same. A shorter grace period may be given later.
   */
  end(graceMs: number): void;
  /** Resolves when the process has ended and its output is complete; rejects if the sandbox was lost. */
  readonly exited: Promise<Exit>;
}

/** A process on a pseudo-terminal: what it prints comes on one stream. */
export interface TerminalProcess extends Omit<Process, "stderr"> {
  resize(size: Size): void;
  /** Calls back when the process has been stopped (Ctrl-Z); it goes on with `kill("SIGCONT")`. */
  onStop(listener: () => void): void;
}

/** What everything above the wall is written against. */
export interface Sandbox {
  readonly id: SessionId;
  /** Resolves when the command has been executed; what cannot be executed rejects. */
  exec(command: Command): Promise<Process>;
  exec(command: Command, terminal: Size): Promise<TerminalProcess>;
  /** Unpacks an archive below a directory that exists inside. */
  upload(tar: Readable, target: string): Promise<void>;
  /** Asks every process inside to end, and waits until none is left or the grace period is over. */
  quit(graceMs: number): Promise<void>;
}
