import { setTimeout as wait } from "node:timers/promises";
import { patience } from "./faults/thorough.ts";

/** Shorter than a test's timeout, so that the error can name what the test waited for. */
const patienceMs = patience * 100_000;

/** Repeats `look` until it does not throw, and returns its result. */
export async function eventually<T>(look: () => T | Promise<T>): Promise<T> {
  for (const end = performance.now() + patienceMs; ; await wait(30)) {
    try {
      return await look();
    } catch (error) {
      if (performance.now() < end) continue;
      if (error instanceof Error) error.message = `waited in vain: ${error.message}`;
      throw error;
    }
  }
}

/** Awaits `work`, but fails after a generous bound. `make bench` measures how long it really takes. */
export async function soon<T>(what: string, work: Promise<T>): Promise<T> {
  const over = new AbortController();
  const late = wait(patienceMs, undefined, { signal: over.signal }).then(() => {
    throw new Error(`waited in vain: ${what}`);
  });
  late.catch(() => {});
  try {
    return await Promise.race([work, late]);
  } finally {
    over.abort();
  }
}

/** Waits until `isSo` returns true. */
export async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = performance.now() + patienceMs; !(await isSo()); await wait(25))
    if (performance.now() > end) throw new Error(`waited in vain: ${what}`);
}
