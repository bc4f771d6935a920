import { spawn } from "node:child_process";
import { once } from "node:events";
import { descendantsOf, describeProcess } from "./read.ts";

export interface SuperviseOptions {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  /** Runs before a signal is passed on. */
  readonly onSignal?: () => void;
  /** How long the command may take. Then its processes are listed, and it is told to end like by a signal. */
  readonly limitMs?: number;
}

export interface Supervised {
  readonly status: number;
  /** Whether this process was told to end meanwhile, or the time was up. The caller cleans up, and then ends. */
  readonly isInterrupted: boolean;
}

/**
 * Runs a command to its end in a process group of its own. SIGINT, SIGTERM and SIGHUP go on to the whole group, because
 * make does not pass an interrupt on, and this process waits until the command has cleaned up after itself.
 */
export async function supervise(words: readonly string[], options: SuperviseOptions): Promise<Supervised> {
  const [program = "", ...rest] = words;
  const { cwd, env, onSignal, limitMs } = options;
  const child = spawn(program, rest, { cwd, env, stdio: ["ignore", "inherit", "inherit"], detached: true });
  let isInterrupted = false;
  const pass = (signal: NodeJS.Signals) => {
    isInterrupted = true;
    onSignal?.();
    if (child.pid !== undefined) process.kill(-child.pid, signal);
  };
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const signal of signals) process.on(signal, pass);
  const timer =
    limitMs === undefined
      ? undefined
      : setTimeout(
          () => {
            const lines = [
              "the time is up; these processes are running:",
              ...descendantsOf(process.pid).map(describeProcess),
            ];
            process.stdout.write(`\n${lines.join("\n")}\n`);
            pass("SIGTERM");
          },
          Math.max(0, limitMs),
        );
  try {
    const [status] = (await once(child, "exit")) as [number | null];
    return { status: status ?? 1, isInterrupted };
  } finally {
    clearTimeout(timer);
    for (const signal of signals) process.off(signal, pass);
  }
}
