import type { Readable } from "node:stream";

/**
 * Gives all that a stream has to `take`, and reads no more while that waits. Resolves at the stream's end, however it
 * came, or when the signal is aborted; the stream is then left as it is.
 */
export function pump(
  from: Readable,
  take: (chunk: Buffer) => Promise<void> | undefined,
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let pending: Promise<void> = Promise.resolve();
    const leave = () => {
      from.off("data", onData).off("end", onEnd).off("close", onEnd);
      signal.removeEventListener("abort", settle);
      from.pause();
    };
    const settle = () => {
      leave();
      resolve();
    };
    const fail = (error: unknown) => {
      leave();
      reject(error);
    };
    const onData = (chunk: Buffer) => {
      try {
        const taken = take(chunk);
        if (taken === undefined) return;
        from.pause();
        pending = taken.then(() => {
          if (!signal.aborted) from.resume();
        }, fail);
      } catch (error) {
        fail(error);
      }
    };
    const onEnd = () => void pending.then(settle);
    // A stream that breaks later is nobody's concern here, and must not become everybody's.
    from.on("error", onEnd);
    if (from.readableEnded || from.destroyed || signal.aborted) return resolve();
    from.on("data", onData).on("end", onEnd).on("close", onEnd);
    signal.addEventListener("abort", settle, { once: true });
  });
}
