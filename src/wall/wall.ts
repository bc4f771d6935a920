import type { Plan } from "../plan/plan.ts";

/** Something of a plan that a wall on this machine cannot enforce. */
export interface Gap {
  readonly name: string;
  readonly about: string;
  readonly remedy: string;
}

/** How a command ended. `code` is what a shell would report: 128 + n for signal n. */
export interface Exit {
  readonly code: number;
  /** True where Podbot itself ended it, the grace period being over. */
  readonly killed: boolean;
}

export type Signal = "SIGINT" | "SIGTERM" | "SIGHUP" | "SIGQUIT";

/** What a start needs that is not in the plan: values, and the world's wishes. */
export interface Birth {
  /** The environment inside, values and all. */
  readonly env: Readonly<Record<string, string>>;
  /** Calls back for each signal that must reach the command; returns the way to stop listening. */
  readonly onSignal?: (listener: (signal: Signal) => void) => () => void;
  readonly signal?: AbortSignal;
}

/** The caller's own descriptors: standard input, output and error of the command. */
export type Stdio = readonly [stdin: number, stdout: number, stderr: number];

export interface Wall {
  readonly kind: "bubblewrap" | (string & {});
  check(plan: Plan): Promise<readonly Gap[]>;
  run(plan: Plan, birth: Birth, stdio: Stdio): Promise<Exit>;
}
