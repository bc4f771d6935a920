import type { Readable, Writable } from "node:stream";
import type { Size } from "../sandbox/sandbox.ts";
import type { Signal, Stdio } from "../wall/wall.ts";

/** Everything of the outside world that the program uses, so that tests can drive it whole. */
export interface Io {
  readonly stdout: Output;
  readonly stderr: Output;
  /** What a sandboxed command gets as its standard input, output and error. */
  readonly descriptors: Stdio;
  /** The same as streams, made when they are asked for: bytes of a process that is not ours, as they come. */
  readonly streams: () => Promise<Streams>;
  /** The same for a protocol: they can be destroyed at any time, also while nobody reads what was written. */
  readonly channel: () => Promise<Channel>;
  /** The caller's terminal, where both standard input and output are one. */
  readonly terminal: () => Promise<Terminal | null>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** Device and inode of the directory that the process stands in: `dev:ino`. */
  readonly cwdIdentity?: string;
  readonly onSignal: (listener: (signal: Signal) => void) => () => void;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

export interface Channel extends Streams {
  /** Whether the process that started this one is gone, or nobody can read any more what is written. */
  readonly isAbandoned: () => boolean;
}

export interface Output {
  write(text: string): void;
  /** Whether whoever read it has left. */
  readonly isLeft: boolean;
  readonly isTerminal: boolean;
}

export interface Streams {
  readonly input: Readable;
  readonly output: Writable;
  readonly errors: Writable;
}

export interface Terminal {
  /** Null where the terminal does not say. */
  size(): Size | null;
  onResize(listener: () => void): () => void;
  /** In raw mode every key is a byte of input, Ctrl-C too. */
  setRaw(raw: boolean): void;
  /** Stops this job as Ctrl-Z would have; resolves when it is in the foreground again, or goes on since it is over. */
  suspend(over: AbortSignal): Promise<void>;
}
