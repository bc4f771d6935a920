import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { describe, expect, onTestFinished, test } from "vitest";
import { lookAt } from "../../src/machine/process-mark.ts";
import { gather } from "../../src/registry/evidence.ts";
import { type Hands, perform } from "../../src/registry/perform.ts";
import { cleaning, reconcile } from "../../src/registry/reconcile.ts";
import { sessionDirectory, writeRecord } from "../../src/registry/store.ts";
import { liveMark, makeScratch, sampleRecord, seen } from "./sessions.ts";

const id = "abcdefgh23";

function hands(stateDirectory: string): Hands & { readonly done: string[] } {
  const done: string[] = [];
  return {
    stateDirectory,
    askKeeper: async (socket) => void done.push(`ask ${socket}`),
    destroyBox: async (box) => void done.push(`destroy ${box}`),
    graceMs: 300,
    done,
  };
}

async function start(program: string, ...words: string[]): Promise<ChildProcess> {
  const child = spawn(program, words, { stdio: ["ignore", "pipe", "ignore"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child, "spawn");
  return child;
}

describe("a session whose keeper cannot be reached", () => {
  test.each([
    ["runs", ["sleep", "60"], false],
    ["is stopped", ["sleep", "60"], true],
    ["does not listen to SIGTERM", ["sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.1; done"], false],
  ] as const)("vanishes wholly when it is stopped, where its keeper %s", async (_, command, stopped) => {
    const { state, root, runtimeOf } = makeScratch();
    const child = await start(command[0], ...command.slice(1));
    if (command[0] === "sh") await once(child.stdout as NonNullable<typeof child.stdout>, "data");
    const keeper = liveMark(child.pid);
    if (stopped) child.kill("SIGSTOP");
    const directory = runtimeOf(id);
    writeRecord(state, sampleRecord({ keeper, directory }));
    const places = { stateDirectory: state, runtimeRoots: [root], boxes: async () => seen(id) };
    const [evidence] = await gather(places);
    if (evidence === undefined) throw new Error("nothing was seen");
    const [view] = reconcile([evidence]).sessions;
    if (view === undefined) throw new Error("nothing is shown");
    const gone = once(child, "exit");
    const mine = hands(state);
    await perform(cleaning(view, evidence), mine);
    await gone;
    expect(mine.done).toEqual([`destroy ${id}`]);
    expect(await gather({ ...places, boxes: async () => seen() })).toEqual([]);
  });
});

test("a process that only has the keeper's number is left alone", async () => {
  const { state } = makeScratch();
  const child = await start("sleep", "60");
  const keeper = { ...liveMark(child.pid), started: "1" };
  await perform(
    [
      { kind: "continue-keeper", id, keeper },
      { kind: "kill-keeper", id, keeper },
    ],
    hands(state),
  );
  expect(lookAt(liveMark(child.pid))).toBe("alive");
});

test("a keeper elsewhere is never signalled, and what follows is not done", async () => {
  const { state, runtimeOf } = makeScratch();
  const child = await start("sleep", "60");
  const keeper = { ...liveMark(child.pid), machine: "another" };
  const directory = runtimeOf(id);
  const actions = [
    { kind: "kill-keeper", id, keeper },
    { kind: "remove-runtime", id, directory },
  ] as const;
  await expect(perform(actions, { ...hands(state), graceMs: 40 })).rejects.toMatchObject({
    code: "SESSION_UNREACHABLE",
  });
  expect(existsSync(directory)).toBe(true);
  expect(lookAt(liveMark(child.pid))).toBe("alive");
});

test("a keeper that answers is asked before anything is removed", async () => {
  const { state } = makeScratch();
  writeRecord(state, sampleRecord());
  const refusing = { ...hands(state), askKeeper: () => Promise.reject(new Error("No.")) };
  const actions = [
    { kind: "ask-keeper", id, socket: "/s" },
    { kind: "remove-state", id },
  ] as const;
  await expect(perform(actions, refusing)).rejects.toThrow("No.");
  expect(existsSync(sessionDirectory(state, id))).toBe(true);
  const willing = hands(state);
  await perform(actions, willing);
  expect(willing.done).toEqual(["ask /s"]);
  expect(existsSync(sessionDirectory(state, id))).toBe(false);
});
