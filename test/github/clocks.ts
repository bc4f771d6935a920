import { setImmediate } from "node:timers/promises";
import type { Clock } from "../../src/github/clock.ts";

/** The machine's own time, and naps that take none: how long they would have been is kept. */
export function hasty(aheadMs = 0): Clock & { readonly naps: number[] } {
  const naps: number[] = [];
  return {
    naps,
    now: () => Date.now() + aheadMs,
    monotonic: () => performance.now(),
    sleep: async (ms, signal) => {
      signal.throwIfAborted();
      naps.push(ms);
    },
  };
}

interface Sleeper {
  readonly until: number;
  readonly wake: () => void;
}

/** Time that passes when a test says so. */
export class TestClock implements Clock {
  wall = Date.parse("2026-01-01T00:00:00Z");
  ticks = 1_000;
  #sleepers: Sleeper[] = [];

  now(): number {
    return this.wall;
  }

  monotonic(): number {
    return this.ticks;
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = () => reject(signal.reason);
      const wake = () => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      this.#sleepers.push({ until: this.ticks + ms, wake });
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }

  /** Both clocks go on, and whoever's time has come is woken before they go further. */
  async pass(ms: number): Promise<void> {
    const end = this.ticks + ms;
    for (let steps = 0; steps < 10_000; steps += 1) {
      await settle();
      const next = this.#sleepers.map(({ until }) => until).sort((a, b) => a - b)[0];
      if (next === undefined || next > end) break;
      this.#go(next - this.ticks);
    }
    this.#go(end - this.ticks);
    await settle();
  }

  /** The wall's clock is set, or the machine was suspended: no time has passed for timers. */
  jump(ms: number): void {
    this.wall += ms;
  }

  #go(ms: number): void {
    this.wall += ms;
    this.ticks += ms;
    const awake = this.#sleepers.filter(({ until }) => until <= this.ticks);
    this.#sleepers = this.#sleepers.filter(({ until }) => until > this.ticks);
    for (const { wake } of awake) wake();
  }
}

/** Whatever can go on without time does. */
export async function settle(): Promise<void> {
  for (let turns = 0; turns < 5; turns += 1) await setImmediate();
}
