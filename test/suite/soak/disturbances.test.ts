import { spawn } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, afterEach, expect, test } from "vitest";
import { until } from "../../eventually.ts";
import { chance } from "../../faults/chance.ts";
import { erase } from "../erase.ts";
import { parentOf, pids, wordsOf } from "../read.ts";
import { newRun } from "../run.ts";
import { clock } from "./clock.ts";
import { disk } from "./disk.ts";
import type { Disturbance, Kind } from "./disturbance.ts";
import { load } from "./load.ts";
import { stall } from "./stall.ts";

const run = newRun();
afterAll(() => erase(run));
const started: Disturbance[] = [];

afterEach(async () => {
  for (const each of started.splice(0)) await each[Symbol.asyncDispose]();
});

async function start(kind: Kind): Promise<Disturbance> {
  const disturbance = await kind.start({ chance: chance(1), run });
  started.push(disturbance);
  return disturbance;
}

/** Ends when no timer fired for a while. */
const untilGap = `let last = performance.now();
  setInterval(() => {
    if (performance.now() - last > 150) { console.log("gap"); process.exit(); }
    last = performance.now();
  }, 5);`;

/** Ends when the time of day has gone on by far more, or less, than the steady clock. */
const untilJump = `const began = [Date.now(), performance.now()];
  setInterval(() => {
    const jump = Math.abs(Date.now() - began[0] - (performance.now() - began[1]));
    if (jump > 10_000) { console.log("jump"); process.exit(); }
  }, 5);`;

async function observe({ prefix, env }: Disturbance, script: string): Promise<string> {
  const [program = "", ...words] = [...prefix, process.execPath, "-e", script];
  const child = spawn(program, words, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "inherit"] });
  return (await text(child.stdout)).trim();
}

test.runIf(stall.obstacle() === null)("stall: the processes stand still, and nothing of it is left", async () => {
  const stalled = await start(stall);
  const group = stalled.prefix.at(-1) ?? "";
  expect(await observe(stalled, untilGap)).toBe("gap");
  await started.pop()?.[Symbol.asyncDispose]();
  expect(existsSync(group)).toBe(false);
});

test.runIf(clock.obstacle() === null)("clock: the time of day jumps, for the tests alone", async () => {
  const before = { ...process.env };
  const jumping = await start(clock);
  expect(await observe(jumping, untilJump)).toBe("jump");
  expect(process.env).toEqual(before);
});

test("load: programs want the processor, until they are told to end", async () => {
  const before = burners();
  await start(load);
  await until("they run", () => burners() > before);
  await started.pop()?.[Symbol.asyncDispose]();
  expect(burners()).toBe(before);
});

test("disk: files are written again and again, and removed in the end", async () => {
  await start(disk);
  const written = join(run.directory, "written-0");
  await until("one is whole", () => existsSync(written) && statSync(written).size === 16 * 1024 * 1024);
  const { mtimeMs } = statSync(written);
  await until("it is written again", () => statSync(written).mtimeMs > mtimeMs);
  await started.pop()?.[Symbol.asyncDispose]();
  expect(readdirSync(run.directory).filter((name) => name.startsWith("written"))).toEqual([]);
});

/** How many children of this process keep a processor busy. */
function burners(): number {
  return pids().filter((pid) => parentOf(pid) === process.pid && wordsOf(pid).includes("performance.now() + 200"))
    .length;
}
