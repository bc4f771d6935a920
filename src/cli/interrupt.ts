import type { Signal } from "../wall/wall.ts";
import type { Io } from "./io.ts";

/** What a shell reports of who was ended by a signal. */
export const statuses: Readonly<Record<Signal, number>> = { SIGHUP: 129, SIGINT: 130, SIGQUIT: 131, SIGTERM: 143 };

/**
 * Does work that a signal calls off, until it says that another listener takes care of signals. There is a listener at
 * every moment: without one, a signal would end this process at once, and leave its session without a keeper. Between
 * `attached` and the other listener nothing may be waited for.
 */
export async function untilAttached(
  io: Io,
  work: (signal: AbortSignal, attached: () => void) => Promise<number>,
): Promise<number> {
  const interrupt = new AbortController();
  let first: Signal | null = null;
  let isAttached = false;
  const forget = io.onSignal((signal) => {
    if (isAttached) return;
    first ??= signal;
    interrupt.abort();
  });
  try {
    return await work(interrupt.signal, () => {
      isAttached = true;
    });
  } catch (error) {
    if (first === null) throw error;
    return statuses[first];
  } finally {
    forget();
  }
}

/**
 * Keeps a signal that comes while a command is being started, for the first listener. Without one it would end this
 * process, and not reach the command. A second signal does end this process: the command may never start.
 */
export function holdSignal(io: Io): Io {
  let held: Signal | null = null;
  const forget = io.onSignal((signal) => {
    held = signal;
    forget();
  });
  const onSignal: Io["onSignal"] = (listener) => {
    // Node drops a signal that it has received and not reported, if its last listener goes first.
    const stop = io.onSignal(listener);
    forget();
    if (held !== null) listener(held);
    held = null;
    return stop;
  };
  return { ...io, onSignal };
}
