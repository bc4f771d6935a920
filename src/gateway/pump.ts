import type { Readable, Writable } from "node:stream";
import { bounds } from "./limits.ts";

export function heldBytesAmong(connections: number): number {
  return connections > bounds.crowd ? bounds.heldInCrowdBytes : bounds.heldBytes;
}

/** What bytes pass through on their way. */
export interface Sieve {
  push(bytes: Buffer): Buffer;
  flush(): Buffer;
}

/** How many bytes have passed so far. */
export interface Tally {
  bytes: number;
}

/**
 * Carries all that one stream gives to another, and waits where the other is slow. Resolves at the end of the one,
 * without ending the other; rejects as soon as either breaks. It counts as it goes.
 */
export function pump(from: Readable, to: Writable, tally: Tally, sieve?: Sieve): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (error?: Error) => {
      from.off("data", onData).off("end", onEnd).off("error", settle).off("close", onClose);
      to.off("drain", onDrain).off("error", settle).off("close", onClose);
      if (error === undefined) resolve();
      else reject(error);
    };
    const onData = (chunk: Buffer) => {
      tally.bytes += chunk.length;
      const bytes = sieve === undefined ? chunk : sieve.push(chunk);
      if (bytes.length > 0 && !to.write(bytes)) from.pause();
    };
    const onDrain = () => from.resume();
    const onEnd = () => {
      if (isCutOff(from)) return settle(new Error("it was broken off"));
      const rest = sieve?.flush();
      if (rest !== undefined && rest.length > 0) to.write(rest);
      settle();
    };
    const onClose = () => settle(new Error("the connection was closed"));
    if (from.readableEnded) return resolve();
    // Neither would say so once more.
    if (from.destroyed || to.destroyed) return onClose();
    from.on("data", onData).on("end", onEnd).on("error", settle).on("close", onClose);
    to.on("drain", onDrain).on("error", settle).on("close", onClose);
    from.resume();
  });
}

/** Node lets a message that was broken off end like any other, and tells apart only what it was. */
function isCutOff(from: Readable & { readonly complete?: boolean; readonly rstCode?: number }): boolean {
  return from.complete === false || (from.rstCode ?? 0) !== 0;
}
