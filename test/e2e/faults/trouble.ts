import { existsSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { markOf } from "../../../src/machine/process-mark.ts";
import { soon, until } from "../../eventually.ts";
import { kill } from "../../faults/machine.ts";
import { call } from "../engines/api.ts";
import { newEngine, type TestEngine } from "../engines/engine.ts";
import type { EngineName } from "../engines/record.ts";
import type { Extent } from "../extent.ts";
import { GoBetween } from "./go-between.ts";
import { holdStarts } from "./hold-starts.ts";
import { type EnginePlace, expectClean, expectNobody, newPlace, stillThere, stopAll } from "./machine.ts";

const run = ["run", "--quiet", "--agent", "custom", "--"] as const;

/** Waits for a file that the tests make in the workspace. */
const untilGo = ["sh", "-c", "while [ ! -e go ]; do sleep 0.05; done; exit 3"];

function keeperOf(place: EnginePlace): number {
  return place.commands("keep")[0]?.pid ?? -1;
}

/** A session works before the engine has completed the start and recorded that the container runs. */
async function untilStarted(place: EnginePlace): Promise<void> {
  await until("the engine is done with the start", async () =>
    (await place.containers()).every(({ state }) => state === "running"),
  );
}

/** Kills or stops the engine, and changes containers and files as their owner can. */
export function trouble(name: EngineName, open: () => TestEngine, extent: Extent): void {
  describe("trouble with an engine of its own:", () => ofTheEngine(name, extent));
  ofTheContainer(open);
  withoutRecord(open);
  // The rest concerns sockets and Podbot's own files, so one engine is enough.
  if (extent === "everything") ofThePlaces(open);
}

function ofTheEngine(name: EngineName, extent: Extent): void {
  let engine: TestEngine;
  let own: AsyncDisposable | null = null;
  beforeAll(async () => {
    const started = await newEngine(name);
    engine = started;
    own = started;
  });
  // Restarts an engine that a failed test left dead, so that later tests do not fail as well.
  afterEach(() => engine.start().catch(() => {}));
  afterAll(() => own?.[Symbol.asyncDispose]());

  describe.sequential("an engine that is killed under a session", () => {
    test("and comes back: ps tells the truth all the time, and one command cleans", async () => {
      const { place, before } = newPlace(engine);
      const id = await place.detach(...untilGo);
      await untilStarted(place);
      await engine.kill();
      const looked = await soon("a look", place.podbot("ps", "--json"));
      expect(looked).toMatchObject({ status: 0, stderr: "" });
      expect(JSON.parse(looked.stdout)).toMatchObject([{ id, state: "running" }]);
      expect(place.boxes()).toEqual([id]);
      expect(await place.podbot("exec", id, "echo", "inside")).toMatchObject({ status: 0, stdout: "inside\n" });
      await engine.start();
      // A restarted Docker ends the containers that it finds; Podman leaves them alone.
      if (name.startsWith("podman")) {
        place.world.file("home/project/go");
        await until("it ends", async () => (await place.ps())[0]?.state === "ended");
        expect(await place.ps()).toMatchObject([{ id, state: "ended", exit: { code: 3 } }]);
        await stopAll(place, [...before, "go"].sort());
      } else {
        const look = async () => ({ listed: await place.ps(), boxes: place.boxes() });
        let seen = await look();
        const agrees = () =>
          seen.listed[0]?.id === id && (seen.listed[0].state === "running") === seen.boxes.includes(id);
        await until("ps agrees with the kernel", async () => {
          seen = await look();
          return agrees();
        }).catch((error) => expect(seen, String(error)).toBe("in agreement"));
        await stopAll(place, before);
      }
    });

    test("and does not come back: the agent ends all the same, and what cannot be known is said", async () => {
      const { place, before } = newPlace(engine);
      const [one, other] = [await place.detach(...untilGo), await place.detach("sleep", "300")];
      await untilStarted(place);
      await engine.kill();
      place.world.file("home/project/go");
      await until("the first ends", async () => (await place.ps())[0]?.state === "ended");
      const keeper = place.commands("keep").find(({ argv }) => argv.includes("300"));
      kill(keeper?.pid ?? -1);
      await until("the second ends by itself", () => place.boxes().length === 0);
      const sessions = await place.ps();
      expect(sessions).toMatchObject([
        { id: one, state: "ended", exit: { code: 3 } },
        { id: other, state: "died", why: expect.stringContaining("engine does not answer") },
      ]);
      const stopped = await soon("the stop", place.podbot("stop", "--all", "--time", "1"));
      expect(stopped.status).toBe(125);
      expect(stopped.stdout).toBe(`${one}\n`);
      expect(stopped.stderr).toMatch(/The engine at unix:.* cannot be reached: .*\n.*way out: .*engine/);
      expect(await place.ps()).toMatchObject([{ id: other, state: "died" }]);
      const refused = await soon("the refusal", place.podbot(...run, "true"));
      expect(refused).toMatchObject({ status: 125, stderr: expect.stringContaining("ENGINE_CONNECTION_FAILED") });
      await engine.start();
      await stopAll(place, [...before, "go"].sort());
    });

    test("a session that is stopped meanwhile ends, and the rest goes when the engine is back", async () => {
      const { place, before } = newPlace(engine);
      await place.detach("sleep", "300");
      await untilStarted(place);
      await engine.kill();
      const { status, stderr } = await soon("the stop", place.podbot("stop", "--all", "--time", "1"));
      await expectNobody(place);
      if (status !== 0) expect(stderr).toMatch(/cannot be reached.*\n.*way out/);
      await engine.start();
      await stopAll(place, before);
    });

    // Podman still knows a container whose start a kill has interrupted.
    if (name.startsWith("podman")) return;
    test("before it is done with the start has no session left that it would not know when it comes back", async () => {
      const { place, before } = newPlace(engine);
      using starts = await holdStarts(place);
      const id = await place.detach("sleep", "300");
      expect(place.boxes()).toEqual([id]);
      await engine.kill();
      starts.letGo();
      await until("the session ends", async () => (await place.ps())[0]?.state === "ended");
      await expectNobody(place);
      await engine.start();
      expect(await place.containers()).toEqual([]);
      await stopAll(place, before);
    });
  });

  // A stopped engine behaves the same whichever it is, so one is enough.
  if (extent !== "everything") return;
  describe.sequential("an engine that has stopped answering", () => {
    test("does not keep ps and exec from answering, and run and stop say so", async () => {
      const { place, before } = newPlace(engine);
      const [one, other] = [await place.detach("sleep", "300"), await place.detach("sleep", "301")];
      engine.pause();
      try {
        const starting = soon("the start is given up", place.podbot(...run, "true"));
        const [looked, inside] = await Promise.all([
          soon("a look", place.podbot("ps", "--json")),
          soon("a command inside", place.podbot("exec", one, "echo", "inside")),
        ]);
        expect(JSON.parse(looked.stdout)).toMatchObject([
          { id: one, state: "running" },
          { id: other, state: "running" },
        ]);
        expect(inside).toMatchObject({ status: 0, stdout: "inside\n" });
        const keeper = place.commands("keep").find(({ argv }) => argv.includes("301"));
        kill(keeper?.pid ?? -1);
        await until("the keeper ends", () => place.commands("keep").length === 1);
        expect(await place.ps()).toMatchObject([
          { id: one, state: "running" },
          { id: other, state: "died", why: expect.stringContaining("engine does not answer") },
        ]);
        const stopped = await soon("the stop", place.podbot("stop", other, "--time", "1"));
        expect(stopped).toMatchObject({ status: 125, stdout: "" });
        expect(stopped.stderr).toMatch(/has not answered for \d+ seconds.*\n.*way out/);
        const started = await starting;
        expect(started).toMatchObject({ status: 125, stderr: expect.stringContaining("ENGINE_HEALTH_CHECK_TIMEOUT") });
        expect(started.stderr).toMatch(/has not answered for \d+ seconds.*\n.*way out/);
      } finally {
        engine.resume();
      }
      await stopAll(place, before);
    });

    test("is not waited for by somebody who presses Ctrl-C", async () => {
      const { place, before } = newPlace(engine, (world) => join(world.directory, "engine.sock"));
      using goBetween = await GoBetween.open(place.socket, engine.socket);
      const asked = new Promise<void>((resolve) => {
        goBetween.at("ping", "passed on", () => {
          resolve();
          return "go on";
        });
      });
      engine.pause();
      try {
        const running = place.start(...run, "true");
        await soon("it waits for the engine", asked);
        kill(running.child.pid ?? -1, "SIGINT");
        const outcome = await soon("it is given up", running.done);
        expect(outcome.signal ?? outcome.status).toEqual(outcome.signal === null ? 130 : "SIGINT");
      } finally {
        engine.resume();
      }
      await expectClean(place, before);
    });
  });
}

function ofTheContainer(open: () => TestEngine): void {
  describe("a container whose owner", () => {
    test("pauses it is said to be suspended, nobody can enter it, and stop removes it", async () => {
      const { place, before } = newPlace(open());
      const id = await place.detach("sleep", "300");
      if (!pause(place, id)) return stopAll(place, before);
      const words = expect.stringContaining(`unpause podbot-${id}`);
      expect(await place.ps()).toMatchObject([{ id, state: "suspended", why: words }]);
      expect(await place.podbot("exec", id, "true")).toMatchObject({ status: 125, stderr: words });
      const stopped = await soon("the stop", place.podbot("stop", id, "--time", "1"));
      expect(stopped).toMatchObject({ status: 0, stderr: "" });
      await expectClean(place, before);
    });

    test("pauses it and lets it go on has lost nothing", async () => {
      const { place, before } = newPlace(open());
      const id = await place.detach("sleep", "300");
      if (pause(place, id)) expect(place.engine.cli("unpause", `podbot-${id}`)).toMatchObject({ status: 0 });
      expect(await place.ps()).toMatchObject([{ id, state: "running" }]);
      expect(await place.podbot("exec", id, "true")).toMatchObject({ status: 0, stderr: "" });
      await stopAll(place, before);
    });

    test.each([
      ["kills it", "kill"],
      ["removes it", "rm", "-f"],
    ])("%s ends its session, and whoever is attached hears of it", async (_, ...words) => {
      const { place, before } = newPlace(open());
      const running = place.start(...run, "sleep", "300");
      await until("it runs", () => place.processes().some(({ argv }) => argv[0] === "sleep"));
      const [id = ""] = place.boxes();
      expect(place.engine.cli(...words, `podbot-${id}`)).toMatchObject({ status: 0 });
      const { status, stderr } = await running.done;
      // `rm -f` may send SIGTERM before SIGKILL; then the agent ends with 143.
      if (status === 143) expect(words).toContain("rm");
      else expect({ status, stderr }).toMatchObject({ status: 125, stderr: expect.stringContaining("BOX_LOST") });
      await until("the engine has removed it", async () => (await place.containers()).length === 0);
      await expectClean(place, before);
    });

    test("is another's is neither listed nor touched, whatever its label says", async () => {
      const { place, before } = newPlace(open());
      const { socket, image } = place.engine;
      const id = await place.detach("sleep", "300");
      const name = `podbot-${place.world.directory.replace(/.*-/, "").toLowerCase()}`;
      const { status, body } = await call(socket, "POST", `/v1.40/containers/create?name=${name}`, {
        Image: image,
        Cmd: ["sleep", "300"],
        Labels: { "podbot.session": "abcdefghjk", "podbot.owner": "another" },
        HostConfig: { NetworkMode: "none", Ulimits: limits },
      });
      expect({ status, body }).toMatchObject({ status: 201 });
      try {
        expect(await place.ps()).toMatchObject([{ id, state: "running" }]);
        expect((await place.podbot("stop", "abcdefghjk")).stderr).toContain("SESSION_NOT_FOUND");
        await stopAll(place, before);
        expect((await call(socket, "GET", `/v1.40/containers/${name}/json`)).status).toBe(200);
      } finally {
        await call(socket, "DELETE", `/v1.40/containers/${name}?force=true`);
      }
    });
  });
}

/** Returns false where the engine cannot pause: cgroup v1 gives an ordinary user no freezer. */
function pause({ engine }: EnginePlace, id: string): boolean {
  const { status, stderr } = engine.cli("pause", `podbot-${id}`);
  const canPause = engine.name !== "podman-rootless" || existsSync("/sys/fs/cgroup/cgroup.controllers");
  if (canPause) expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  else expect({ status, stderr }).toMatchObject({ status: 125, stderr: expect.stringContaining("cgroup") });
  return canPause;
}

const limits = ["nofile", "nproc"].map((Name) => ({ Name, Soft: 1_024, Hard: 1_024 }));

function withoutRecord(open: () => TestEngine): void {
  describe("a runtime directory that is deleted under a session", () => {
    test("and whose record is, too, is still found by its container", async () => {
      const { place, before } = newPlace(open());
      const id = await place.detach("sleep", "300");
      rmSync(join(place.runtime, id), { recursive: true });
      rmSync(place.sessions, { recursive: true });
      expect(await place.ps()).toMatchObject([{ id, state: "stray" }]);
      await stopAll(place, before);
    });
  });
}

function ofThePlaces(open: () => TestEngine): void {
  describe("a socket of the engine that", () => {
    test("is gone for a while changes nothing for a session", async () => {
      const { place, before } = newPlace(open(), (world) => join(world.directory, "engine.sock"));
      symlinkSync(place.engine.socket, place.socket);
      const id = await place.detach("sleep", "300");
      renameSync(place.socket, `${place.socket}.away`);
      expect(await place.ps()).toMatchObject([{ id, state: "running" }]);
      expect(await place.podbot("exec", id, "true")).toMatchObject({ status: 0, stderr: "" });
      expect(await place.podbot(...run, "true")).toMatchObject({
        status: 125,
        stderr: expect.stringContaining("ENGINE_SOCKET_NOT_FOUND"),
      });
      renameSync(`${place.socket}.away`, place.socket);
      expect(await place.podbot(...run, "true")).toMatchObject({ status: 0, stderr: "" });
      await stopAll(place, before);
    });

    test("does not exist any more leaves a record, and a way to be rid of it", async () => {
      const { place, before } = newPlace(open());
      const id = "abcdefghjk";
      const directory = join(place.sessions, id);
      place.world.file(join(directory, "record.json"), JSON.stringify(recordOf(place, id)));
      const looked = await soon("a look", place.podbot("ps", "--json"));
      expect(JSON.parse(looked.stdout)).toMatchObject([
        { id, state: "died", why: expect.stringContaining("engine does not answer") },
      ]);
      const { status, stderr } = await place.podbot("stop", "--all");
      expect(status).toBe(125);
      expect(stderr).toContain("ENGINE_SOCKET_NOT_FOUND");
      expect(stderr).toContain(directory);
      rmSync(directory, { recursive: true });
      await stopAll(place, before);
    });
  });

  describe("a runtime directory that is deleted under a session", () => {
    test("leaves it unreachable, and stop ends it by its process", async () => {
      const { place, before } = newPlace(open());
      const id = await place.detach("sleep", "300");
      rmSync(place.runtime, { recursive: true });
      expect(await place.ps()).toMatchObject([{ id, state: "unreachable" }]);
      expect(await place.podbot("exec", id, "true")).toMatchObject({ status: 125 });
      await stopAll(place, before);
    });

    test("and whose keeper is killed, too, does not hide its container, nor keep it", async () => {
      const { place, before } = newPlace(open());
      let isSeen = false;
      // The container ends by itself after some seconds. On a stalled machine that can happen before this test looks,
      // so it tries again.
      for (let tries = 0; tries < 3 && !isSeen; tries++) {
        const id = await place.detach("sleep", "300");
        rmSync(place.runtime, { recursive: true });
        kill(keeperOf(place));
        await until("the keeper ends", () => place.commands("keep").length === 0);
        const boxes = place.boxes();
        const sessions = await place.ps();
        expect(sessions).toMatchObject([{ id, state: "died" }]);
        isSeen = boxes.length + place.boxes().length === 2;
        if (isSeen) expect(sessions[0]?.why).toMatch(stillThere);
        await until("the container ends by itself", () => place.boxes().length === 0);
        await stopAll(place, before);
      }
      expect(isSeen).toBe(true);
    });
  });
}

/** The record of a session that died here, on an engine that does not exist any more. */
function recordOf({ runtime, world }: EnginePlace, id: string): object {
  return {
    version: 1,
    id,
    createdAt: "2026-01-01T00:00:00.000Z",
    keeper: { ...markOf(process.pid), started: "1" },
    dedicated: true,
    wall: "engine",
    engine: { endpoint: `unix://${world.directory}/nowhere.sock`, service: null },
    directory: join(runtime, id),
    cwd: world.project,
    agent: "custom",
    command: ["true"],
    detached: true,
    phase: "running",
    endedAt: null,
    exit: null,
  };
}
