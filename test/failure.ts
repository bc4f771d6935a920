/** The error of a family that a call ends with; anything else is passed on. */
export function failure<T extends Error>(family: new (...parts: never[]) => T, call: () => unknown): T {
  try {
    call();
  } catch (error) {
    if (error instanceof family) return error;
    throw error;
  }
  throw new Error("Nothing was thrown.");
}
