import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { knownInfo } from "../../src/keeper/engine-info.ts";
import { freshPath, type RunningEngine, say, startEngine } from "../engine/engine-server.ts";

const info = { ServerVersion: "4.3.1", DefaultRuntime: "crun", SecurityOptions: [], CgroupVersion: "2" };
const start = (path?: string) =>
  startEngine(
    {
      "GET /v1.40/info": (_request, response) => say(response, 200, info),
      "GET /v4.0.0/libpod/info": (_request, response) => say(response, 200, {}),
    },
    path,
  );
const asked = ({ calls }: RunningEngine) => calls.filter(({ path }) => path === "/v1.40/info").length;

describe("what an engine says of itself", () => {
  test("is asked for once, and kept for its owner alone", async () => {
    const engine = await start();
    const directory = freshPath("engines");
    const first = await knownInfo(engine.client, directory);
    expect(first).toMatchObject({ flavour: "podman", version: "4.3.1" });
    expect(asked(engine)).toBe(1);
    expect(await knownInfo(engine.client, directory)).toEqual(first);
    expect(asked(engine)).toBe(1);
    const [name = ""] = readdirSync(directory);
    expect(statSync(join(directory, name)).mode & 0o777).toBe(0o600);
    expect(statSync(directory).mode & 0o777).toBe(0o700);
  });

  test("is asked for again when its socket was made anew", async () => {
    const path = freshPath();
    const before = await start(path);
    const directory = freshPath("engines");
    await knownInfo(before.client, directory);
    before.client[Symbol.dispose]();
    await new Promise((resolve) => before.server.close(resolve));
    const after = await start(path);
    await knownInfo(after.client, directory);
    expect(asked(after)).toBe(1);
  });

  test("is not asked for again because its socket was opened to or closed to others", async () => {
    const engine = await start();
    const directory = freshPath("engines");
    await knownInfo(engine.client, directory);
    const { ctimeMs } = statSync(engine.path);
    await sleep(20);
    chmodSync(engine.path, 0o600);
    chownSync(engine.path, process.getuid?.() ?? 0, process.getgid?.() ?? 0);
    expect(statSync(engine.path).ctimeMs).not.toBe(ctimeMs);
    await knownInfo(engine.client, directory);
    expect(asked(engine)).toBe(1);
    utimesSync(engine.path, 1, 1);
    await knownInfo(engine.client, directory);
    expect(asked(engine)).toBe(2);
  });

  test("is asked for again after an hour", async () => {
    const engine = await start();
    const directory = freshPath("engines");
    await knownInfo(engine.client, directory);
    const [name = ""] = readdirSync(directory);
    const old = Date.now() / 1_000 - 3_601;
    utimesSync(join(directory, name), old, old);
    await knownInfo(engine.client, directory);
    expect(asked(engine)).toBe(2);
    await knownInfo(engine.client, directory);
    expect(asked(engine)).toBe(2);
  });

  test.each([
    ["torn", () => "{"],
    ["empty", () => ""],
    ["of another engine", (text: string) => JSON.stringify({ ...JSON.parse(text), mark: "another" })],
  ])("is asked for again where what was kept is %s", async (_, spoil) => {
    const engine = await start();
    const directory = freshPath("engines");
    const first = await knownInfo(engine.client, directory);
    const [name = ""] = readdirSync(directory);
    const path = join(directory, name);
    writeFileSync(path, spoil(readFileSync(path, "utf8")));
    expect(await knownInfo(engine.client, directory)).toEqual(first);
    expect(asked(engine)).toBe(2);
  });

  test("is asked for each time where it cannot be kept", async () => {
    const engine = await start();
    const directory = freshPath("engines");
    writeFileSync(directory, "a file");
    await knownInfo(engine.client, directory);
    expect(await knownInfo(engine.client, directory)).toMatchObject({ version: "4.3.1" });
    expect(asked(engine)).toBe(2);
  });

  test("is not kept of an engine whose socket is gone, and of one that fails", async () => {
    const failing = await startEngine({ "GET /v1.40/info": (_request, response) => say(response, 500, {}) });
    const directory = freshPath("engines");
    mkdirSync(directory);
    await expect(knownInfo(failing.client, directory)).rejects.toThrow();
    rmSync(failing.path);
    await expect(knownInfo(failing.client, directory)).rejects.toThrow();
    expect(readdirSync(directory)).toEqual([]);
  });
});
