import { setTimeout } from "node:timers/promises";

/** Both clocks: the wall's can jump, and the monotonic one stands still while the machine is suspended. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Milliseconds since some moment of the past; never goes back. */
  monotonic(): number;
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms, signal) =>
    setTimeout(ms, undefined, { signal }).catch((error: unknown) => {
      // What is thrown is what whoever gave the signal said.
      signal.throwIfAborted();
      throw error;
    }),
};
