import { spawn } from "node:child_process";
import { once } from "node:events";
import { descendantsOf, describeProcess, identify, killIdentified } from "./read.ts";

export interface SuperviseOptions {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  /** Runs before a signal is passed on. */
  readonly onSignal?: () => void;
  /** How long the command may take. Then its processes are listed, and it is told to end like by a signal. */
  readonly limitMs: number;
  /** How long it may then take to clean up, before all its processes are killed. */
  readonly graceMs?: number;
}

export interface Supervised {
  readonly status: number;
  /** Why the command was told to end before its time. The caller cleans up, and then ends. */
  readonly cutShort: "interrupted" | "took too long" | null;
}

/**
 * Runs a command in a session of its own. A terminal's interrupt would reach all its processes at once; here it reaches
 * this one, which passes it on to the command alone, and that command cleans up.
 */
export async function supervise(words: readonly string[], options: SuperviseOptions): Promise<Supervised> {
  const [program = "", ...rest] = words;
  const { cwd, env, onSignal, limitMs, graceMs = 3 * 60_000 } = options;
  const child = spawn(program, rest, { cwd, env, stdio: ["ignore", "inherit", "inherit"], detached: true });
  let cutShort: Supervised["cutShort"] = null;
  const end = (why: NonNullable<typeof cutShort>, signal: NodeJS.Signals) => {
    cutShort ??= why;
    onSignal?.();
    child.kill(signal);
  };
  const pass = (signal: NodeJS.Signals) => end("interrupted", signal);
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const signal of signals) process.on(signal, pass);
  const timers = [
    setTimeout(
      () => {
        say("took too long; these processes are running:");
        end("took too long", "SIGTERM");
        timers.push(
          setTimeout(() => {
            say("did not end when it was told to; these processes are killed:");
            for (const identity of descendantsOf(process.pid).map(identify))
              if (identity !== null) killIdentified(identity);
          }, graceMs),
        );
      },
      Math.max(0, limitMs),
    ),
  ];
  const say = (what: string) => {
    const running = descendantsOf(process.pid).map(describeProcess);
    process.stdout.write(`\n${[`${words.join(" ")} ${what}`, ...running].join("\n")}\n`);
  };
  try {
    const [status] = (await once(child, "exit")) as [number | null];
    return { status: status ?? 1, cutShort };
  } finally {
    for (const timer of timers) clearTimeout(timer);
    for (const signal of signals) process.off(signal, pass);
  }
}
