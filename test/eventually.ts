import { setTimeout as wait } from "node:timers/promises";

/** Less than a test may take, so that it can say what it waited for. */
const patienceMs = 25_000;

/** Waits until an expectation holds, and gives what was looked at. */
export async function eventually<T>(look: () => T | Promise<T>): Promise<T> {
  for (const end = Date.now() + patienceMs; ; await wait(30)) {
    try {
      return await look();
    } catch (error) {
      if (Date.now() < end) continue;
      if (error instanceof Error) error.message = `waited in vain: ${error.message}`;
      throw error;
    }
  }
}

/** What comes of something that must not take for ever. How long it does take, the bench says. */
export async function soon<T>(what: string, work: Promise<T>): Promise<T> {
  const over = new AbortController();
  const patience = wait(patienceMs, undefined, { signal: over.signal }).then(() => {
    throw new Error(`waited in vain: ${what}`);
  });
  patience.catch(() => {});
  try {
    return await Promise.race([work, patience]);
  } finally {
    over.abort();
  }
}

/** Waits until something is so. */
export async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = Date.now() + patienceMs; !(await isSo()); await wait(25))
    if (Date.now() > end) throw new Error(`waited in vain: ${what}`);
}
