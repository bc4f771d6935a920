import { expect, test } from "vitest";
import { until } from "../eventually.ts";
import { pids, wordsOf } from "./read.ts";
import { supervise } from "./supervise.ts";

const options = { cwd: "/", env: process.env, limitMs: 300_000 };
const sleeping = `sleep 302.${process.pid}`;

test("a command that ends is not cut short", async () => {
  expect(await supervise(["sh", "-c", "exit 3"], options)).toEqual({ status: 3, cutShort: null });
});

test("a command that takes too long is told to end", async () => {
  expect(await supervise(sleeping.split(" "), { ...options, limitMs: 500 })).toEqual({
    status: 1,
    cutShort: "took too long",
  });
});

test("a command that does not end then is killed, with what it has started", async () => {
  const script = `trap '' TERM; ${sleeping} & wait; wait; exit 5`;
  const ended = await supervise(["sh", "-c", script], { ...options, limitMs: 500, graceMs: 500 });
  expect(ended).toEqual({ status: 1, cutShort: "took too long" });
  await until("what it has started has ended", () => !pids().map(wordsOf).includes(sleeping));
});
