import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Run } from "../run.ts";

/** Something that slows or confuses the tests, until it is disposed of. */
export interface Disturbance extends AsyncDisposable {
  /** Words before the command that runs the tests, and variables for it. */
  readonly prefix: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export interface Kind {
  readonly name: string;
  /** Why this machine cannot do it, or null. */
  obstacle(): string | null;
  start(options: DisturbanceOptions): Promise<Disturbance>;
}

export interface DisturbanceOptions {
  /** A number below the limit, chosen by the seed. */
  readonly chance: (limit: number) => number;
  /** The soak's own run. A killed soak leaves what the next run of any tests removes. */
  readonly run: Run;
}

export interface Repetition {
  /** Throws what a step has thrown. */
  stop(): void;
}

/**
 * Calls `step` repeatedly until stopped. `step` returns the milliseconds until the next call. If it fails, as on a full
 * disk, it is not called again: an error that nothing catches would end soak, but not the tests.
 */
export function repeatedly(step: () => number): Repetition {
  let timer: NodeJS.Timeout | undefined;
  const errors: unknown[] = [];
  const next = () => {
    try {
      timer = setTimeout(next, step());
    } catch (error) {
      errors.push(error);
    }
  };
  next();
  return {
    stop() {
      clearTimeout(timer);
      for (const error of errors) throw error;
    },
  };
}

/** A program in the background that must exit when its stdin closes, so that it cannot outlive soak. */
export interface Background {
  end(): Promise<void>;
}

/** Starts one in a session of its own: an interrupt reaches soak alone, which then ends it in order. */
export function startBackground(program: string, words: readonly string[]): Background {
  const child = spawn(program, words, { stdio: ["pipe", "ignore", "inherit"], detached: true });
  const exited = once(child, "exit");
  // A program that cannot be started is reported by `end`.
  exited.catch(() => {});
  return {
    async end() {
      child.stdin.end();
      await exited;
    },
  };
}
