const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export interface Hold extends Disposable {
  /** Removes listeners that were added since. Libraries of Vitest's end the process at once. */
  silenceOthers(): void;
}

/**
 * Calls `act` at the first signal that asks this process to end, instead of ending. Further ones change nothing: an
 * impatient Ctrl-C would leave half of what is being removed.
 */
export function onInterrupt(act: (signal: NodeJS.Signals) => void): Hold {
  const others = signals.map((signal) => ({ signal, listeners: process.listeners(signal) }));
  let isActing = false;
  const hold = (signal: NodeJS.Signals) => {
    if (isActing) return void process.stderr.write("the tests are being removed from this machine: wait\n");
    isActing = true;
    act(signal);
  };
  const silenceOthers = () => {
    for (const signal of signals) process.removeAllListeners(signal).on(signal, hold);
  };
  silenceOthers();
  return {
    silenceOthers,
    [Symbol.dispose]() {
      for (const { signal, listeners } of others) {
        process.off(signal, hold);
        for (const other of listeners) process.on(signal, other);
      }
    },
  };
}

/** Treats output that cannot be written any more, as after `| head` or in a closed terminal, like a hang-up. */
export function hangUpWithOutput(): void {
  let isGone = false;
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", () => {
      if (!isGone) process.kill(process.pid, "SIGHUP");
      isGone = true;
    });
  }
}
