import type { Signal, Stdio } from "../wall/wall.ts";

/** Everything of the outside world that the program uses, so that tests can drive it whole. */
export interface Io {
  readonly stdout: Output;
  readonly stderr: Output;
  /** What a sandboxed command gets as its standard input, output and error. */
  readonly descriptors: Stdio;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** Device and inode of the directory that the process stands in: `dev:ino`. */
  readonly cwdIdentity?: string;
  readonly onSignal: (listener: (signal: Signal) => void) => () => void;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

export interface Output {
  write(text: string): void;
  readonly isTerminal: boolean;
}
