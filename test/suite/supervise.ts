import { spawn } from "node:child_process";
import { once } from "node:events";
import { endingSignals } from "./interrupt.ts";
import { descendantsOf, describeProcess, killAll } from "./read.ts";

export interface SuperviseOptions {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  /** Runs before the command is told to end. */
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
 * this one, which tells the command alone to end, and that command cleans up.
 */
export async function supervise(words: readonly string[], options: SuperviseOptions): Promise<Supervised> {
  const { cwd, env, onSignal, limitMs, graceMs = 3 * 60_000 } = options;
  // If this process is killed, the command is told to end.
  const child = spawn("setpriv", ["--pdeathsig", "TERM", ...words], {
    cwd,
    env,
    stdio: ["ignore", "inherit", "inherit"],
    detached: true,
  });
  let cutShort: Supervised["cutShort"] = null;
  let grace: NodeJS.Timeout | undefined;
  const end = (why: NonNullable<typeof cutShort>) => {
    cutShort ??= why;
    onSignal?.();
    // `make` passes only this signal on to what it runs.
    child.kill("SIGTERM");
    grace ??= setTimeout(() => {
      say("did not end when it was told to; these processes are killed:");
      killAll(descendantsOf(process.pid));
    }, graceMs);
  };
  const interrupt = () => end("interrupted");
  for (const signal of endingSignals) process.on(signal, interrupt);
  const limit = setTimeout(
    () => {
      say("took too long; these processes are running:");
      end("took too long");
    },
    Math.max(0, limitMs),
  );
  const say = (what: string) => {
    const running = descendantsOf(process.pid).map(describeProcess);
    process.stdout.write(`\n${[`${words.join(" ")} ${what}`, ...running].join("\n")}\n`);
  };
  try {
    const [status] = (await once(child, "exit")) as [number | null];
    return { status: status ?? 1, cutShort };
  } finally {
    clearTimeout(limit);
    clearTimeout(grace);
    for (const signal of endingSignals) process.off(signal, interrupt);
  }
}
