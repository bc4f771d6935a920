import { spawn } from "node:child_process";
import { once } from "node:events";

export interface SuperviseOptions {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  /** Runs before a signal is passed on. */
  readonly onSignal?: () => void;
}

export interface Supervised {
  readonly status: number;
  /** Whether this process was told to end meanwhile. The caller cleans up, and then ends. */
  readonly isInterrupted: boolean;
}

/**
 * Runs a command to its end in a process group of its own. SIGINT, SIGTERM and SIGHUP go on to the whole group, because
 * make does not pass an interrupt on, and this process waits until the command has cleaned up after itself.
 */
export async function supervise(words: readonly string[], options: SuperviseOptions): Promise<Supervised> {
  const [program = "", ...rest] = words;
  const { cwd, env, onSignal } = options;
  const child = spawn(program, rest, { cwd, env, stdio: ["ignore", "inherit", "inherit"], detached: true });
  let isInterrupted = false;
  const pass = (signal: NodeJS.Signals) => {
    isInterrupted = true;
    onSignal?.();
    if (child.pid !== undefined) process.kill(-child.pid, signal);
  };
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const signal of signals) process.on(signal, pass);
  try {
    const [status] = (await once(child, "exit")) as [number | null];
    return { status: status ?? 1, isInterrupted };
  } finally {
    for (const signal of signals) process.off(signal, pass);
  }
}
