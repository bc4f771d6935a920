import type { Duplex } from "node:stream";
import { encodeQuit } from "../wire/frames.ts";
import type { Connector } from "./sandbox.ts";

/**
 * Asks every process inside to end, and waits until none is left, but no longer than the grace period. It never fails:
 * who asks is about to end the box, and a box that cannot be asked is as good as quit.
 */
export async function quit(connector: Connector, graceMs: number): Promise<void> {
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(), graceMs);
  try {
    await askToQuit(await connector.connect(over.signal), over.signal);
  } catch {
    // Nobody is there to be asked.
  } finally {
    clearTimeout(timer);
  }
}

/** Whatever the warden answers, and be it that it cannot: it is the end. */
function askToQuit(stream: Duplex, over: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      over.removeEventListener("abort", end);
      stream.off("data", end).off("end", end).off("close", end).destroy();
      resolve();
    };
    stream.on("error", end).on("data", end).on("end", end).on("close", end);
    over.addEventListener("abort", end, { once: true });
    if (over.aborted || stream.destroyed) return end();
    stream.write(encodeQuit());
    stream.resume();
  });
}
