/** What a terminal, a service manager or a person sends to end a program in order. */
export const endingSignals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export interface Hold extends Disposable {
  /** Removes listeners that were added since. Libraries of Vitest's end the process at once. */
  silenceOthers(): void;
}

/**
 * Calls `act` at the first signal that asks this process to end, instead of ending. Further ones change nothing: an
 * impatient Ctrl-C would leave half of what is being removed.
 */
export function onInterrupt(act: (signal: NodeJS.Signals) => void): Hold {
  const others = endingSignals.map((signal) => ({ signal, listeners: process.listeners(signal) }));
  let isActing = false;
  const hold = (signal: NodeJS.Signals) => {
    if (isActing) return void process.stderr.write("what the tests made is being removed from this machine: wait\n");
    isActing = true;
    act(signal);
  };
  const silenceOthers = () => {
    for (const signal of endingSignals) process.removeAllListeners(signal).on(signal, hold);
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
export function endWhenOutputCloses(): void {
  let isGone = false;
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", () => {
      if (!isGone) process.kill(process.pid, "SIGHUP");
      isGone = true;
    });
  }
}
