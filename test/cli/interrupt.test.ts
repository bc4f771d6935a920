import { once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { holdSignal, untilAttached } from "../../src/cli/interrupt.ts";
import type { Io } from "../../src/cli/io.ts";
import type { Signal } from "../../src/wall/wall.ts";
import { until } from "../eventually.ts";

/** Signals of this very process, because Node loses some of them between two listeners. */
const io = {
  onSignal(listener: (signal: Signal) => void) {
    process.on("SIGHUP", listener);
    return () => process.off("SIGHUP", listener);
  },
} as unknown as Io;

const hangUp = () => process.kill(process.pid, "SIGHUP");

/** Resolves when Node has reported the signal to its listeners. */
async function hangUpAndReport(): Promise<void> {
  const reported = once(process, "SIGHUP");
  hangUp();
  await reported;
}

/** Node has received the signal by the time that `hangUp` returns, and reports it later. */
async function report(heard: readonly Signal[]): Promise<readonly Signal[]> {
  await until("the signal is heard", () => heard.length > 0);
  await wait(20);
  return heard;
}

describe("a signal during a start that cannot be called off", () => {
  test("is kept for the first listener", async () => {
    const holding = holdSignal(io);
    await hangUpAndReport();
    const heard: Signal[] = [];
    const forget = holding.onSignal((signal) => heard.push(signal));
    expect(heard).toEqual(["SIGHUP"]);
    forget();
  });

  test("that Node has not reported yet reaches the first listener", async () => {
    const holding = holdSignal(io);
    hangUp();
    const heard: Signal[] = [];
    const forget = holding.onSignal((signal) => heard.push(signal));
    expect(await report(heard)).toEqual(["SIGHUP"]);
    forget();
  });
});

describe("a signal during a start that can be called off", () => {
  test("calls it off, and is the status", async () => {
    const status = untilAttached(io, async (signal) => {
      hangUp();
      await wait(10_000, null, { signal });
      return 0;
    });
    expect(await status).toBe(129);
  });

  test("is no excuse for what fails after another listener takes care of signals", async () => {
    const work = untilAttached(io, async (_, attached) => {
      const forget = io.onSignal(() => {});
      attached();
      await hangUpAndReport();
      forget();
      throw new Error("another failure");
    });
    await expect(work).rejects.toThrow("another failure");
  });

  test("that Node has not reported yet reaches the listener that takes care of signals", async () => {
    const heard: Signal[] = [];
    const status = untilAttached(io, async (_, attached) => {
      hangUp();
      attached();
      const forget = io.onSignal((signal) => heard.push(signal));
      await report(heard);
      forget();
      return 7;
    });
    expect(await status).toBe(7);
    expect(heard).toEqual(["SIGHUP"]);
  });
});
