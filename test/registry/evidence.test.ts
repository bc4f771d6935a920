import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { lookAt } from "../../src/machine/process-mark.ts";
import { openSocketPath } from "../../src/machine/socket-path.ts";
import { type Boxes, type Evidence, gather, type Places } from "../../src/registry/evidence.ts";
import { removeSession, sessionDirectory, writeRecord } from "../../src/registry/store.ts";
import {
  deadMark,
  ended,
  keeperOf,
  listen,
  liveMark,
  makeScratch,
  type Scratch,
  sampleRecord,
  seen,
} from "./sessions.ts";

const id = "abcdefgh23";

async function gatherOne(scratch: Scratch, boxes: Boxes = seen(), waitMs = 10_000): Promise<Evidence | undefined> {
  const found = await gather({
    stateDirectory: scratch.state,
    runtimeRoots: [scratch.root],
    boxes: async () => boxes,
    waitMs,
  });
  expect(found.length).toBeLessThan(2);
  return found[0];
}

/** A session with a record and a runtime directory; its socket. */
function session(scratch: Scratch, keeper = liveMark()): string {
  const directory = scratch.runtimeOf(id);
  writeRecord(scratch.state, sampleRecord({ keeper, directory }));
  return join(directory, "keeper.sock");
}

describe("what a keeper's socket says", () => {
  test("is that it answers, where it says who it is", async () => {
    const scratch = makeScratch();
    const socket = session(scratch);
    await listen(socket, keeperOf(id, scratch));
    expect(await gatherOne(scratch, seen(id))).toEqual({
      id,
      record: sampleRecord({ keeper: liveMark(), directory: join(scratch.root, id) }),
      damaged: null,
      keeper: "answers",
      socket,
      process: "alive",
      box: "there",
      runtime: [join(scratch.root, id)],
    });
  });

  test("is that it answers, also in pieces and after other things", async () => {
    const scratch = makeScratch();
    const server = await listen(session(scratch), () => null);
    server.on("connection", async (connection) => {
      connection.write('{"jsonrpc":"2.0","method":"note"}\n{"jsonrpc":"2.0","id":1,');
      await wait(20);
      connection.write(`"result":{"id":"${id}","state":"${scratch.state}"}}\n`);
    });
    expect(await gatherOne(scratch)).toMatchObject({ keeper: "answers" });
  });

  test("is that it is absent, where there is none", async () => {
    const scratch = makeScratch();
    session(scratch);
    expect(await gatherOne(scratch)).toMatchObject({ keeper: "absent", socket: null, process: "alive" });
  });

  test("is that it refuses, where its process was killed", async () => {
    const scratch = makeScratch();
    const socket = session(scratch, deadMark());
    const program = `require("net").createServer().listen(${JSON.stringify(socket)}, () => console.log("up"))`;
    const child = spawn(process.execPath, ["-e", program], { stdio: ["ignore", "pipe", "inherit"] });
    onTestFinished(() => void child.kill("SIGKILL"));
    await once(child.stdout, "data");
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(await gatherOne(scratch)).toMatchObject({ keeper: "refused", process: "dead" });
  });

  test("is that it refuses, where a file has its name", async () => {
    const scratch = makeScratch();
    writeFileSync(session(scratch), "");
    expect(await gatherOne(scratch)).toMatchObject({ keeper: "refused" });
  });

  const others: readonly [string, (line: string) => string | null, string, number?][] = [
    ["the keeper of another session", keeperOf("zzzzzzzzzz", { state: "/" }), "refused"],
    ["somebody without a name", () => '{"jsonrpc":"2.0","id":1,"result":null}\n', "refused"],
    ["somebody who says nothing", () => null, "silent", 150],
    ["somebody who hangs up", () => "", "silent"],
    ["somebody who talks nonsense", () => "hello\n", "silent"],
    ["somebody who never ends a line", () => "x".repeat(2 * 1024 * 1024), "silent"],
    ["a keeper that fails", () => '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}\n', "silent"],
  ];
  test.each(others)("of %s", async (_, answer, keeper, waitMs) => {
    const scratch = makeScratch();
    await listen(session(scratch), answer);
    expect(await gatherOne(scratch, seen(), waitMs)).toMatchObject({ keeper, socket: null });
  });

  test("is silence where its process is stopped", async () => {
    const scratch = makeScratch();
    const socket = join(scratch.runtimeOf(id), "keeper.sock");
    const program = `require("net").createServer().listen(${JSON.stringify(socket)}, () => console.log("up"))`;
    const child = spawn(process.execPath, ["-e", program], { stdio: ["ignore", "pipe", "inherit"] });
    onTestFinished(() => void child.kill("SIGKILL"));
    await once(child.stdout, "data");
    const mark = liveMark(child.pid);
    child.kill("SIGSTOP");
    while (lookAt(mark) !== "stopped") await wait(5);
    session(scratch, mark);
    expect(await gatherOne(scratch, seen(), 150)).toMatchObject({ keeper: "silent", process: "stopped" });
  });

  test("reaches from a place whose path is too long for a socket", async () => {
    const scratch = makeScratch();
    const directory = join(scratch.root, "d".repeat(200), id);
    mkdirSync(directory, { recursive: true });
    writeRecord(scratch.state, sampleRecord({ keeper: liveMark(), directory }));
    const path = openSocketPath(join(directory, "keeper.sock"));
    onTestFinished(() => path[Symbol.dispose]());
    await listen(path.address, keeperOf(id, scratch));
    expect(await gatherOne(scratch)).toMatchObject({ keeper: "answers", runtime: [directory] });
  });

  test("is waited for from all at once", async () => {
    const scratch = makeScratch();
    for (let count = 0; count < 20; count += 1) {
      const name = `silent${String(count).padStart(4, "0")}`;
      const directory = scratch.runtimeOf(name);
      writeRecord(scratch.state, sampleRecord({ id: name, keeper: liveMark(), directory }));
      await listen(join(directory, "keeper.sock"), () => null);
    }
    // One after the other, it would take longer than a test may.
    const found = await gather({
      stateDirectory: scratch.state,
      runtimeRoots: [scratch.root],
      boxes: async () => seen(),
      waitMs: 2_000,
    });
    expect(found.map(({ keeper }) => keeper)).toEqual(Array(20).fill("silent"));
  });
});

describe("a session is seen", () => {
  test("by its record alone", async () => {
    const scratch = makeScratch();
    writeRecord(scratch.state, sampleRecord({ ...ended, keeper: deadMark() }));
    expect(await gatherOne(scratch)).toMatchObject({ process: "dead", runtime: [], box: "gone" });
  });

  test("by its record, where its directory cannot even be looked at", async () => {
    const scratch = makeScratch();
    const directory = join(scratch.root, "d".repeat(300), id);
    writeRecord(scratch.state, sampleRecord({ keeper: deadMark(), directory }));
    expect(await gatherOne(scratch)).toMatchObject({ keeper: "silent", process: "dead", runtime: [] });
  });

  test("by its runtime directory alone, where its keeper says that it is of this state directory", async () => {
    const scratch = makeScratch();
    const directory = scratch.runtimeOf(id);
    await listen(join(directory, "keeper.sock"), keeperOf(id, scratch));
    expect(await gatherOne(scratch)).toMatchObject({ id, record: null, keeper: "answers", runtime: [directory] });
  });

  test("not by a runtime directory whose keeper is of another state directory, or has yet to say", async () => {
    const scratch = makeScratch();
    const directory = scratch.runtimeOf(id);
    expect(await gatherOne(scratch)).toBeUndefined();
    await listen(join(directory, "keeper.sock"), keeperOf(id, { state: "/elsewhere" }));
    expect(await gatherOne(scratch)).toBeUndefined();
  });

  test("not by its box alone, which may be one of the same user's in other places", async () => {
    expect(await gatherOne(makeScratch(), seen(id))).toBeUndefined();
  });

  test("by a damaged record, which says nothing of its process", async () => {
    const scratch = makeScratch();
    session(scratch);
    writeFileSync(join(sessionDirectory(scratch.state, id), "record.json"), "{");
    expect(await gatherOne(scratch)).toMatchObject({
      record: null,
      damaged: expect.stringContaining("JSON"),
      process: "unknown",
    });
  });

  test("also where runtime directories were before", async () => {
    const scratch = makeScratch();
    const before = join(scratch.state, "before", id);
    mkdirSync(before, { recursive: true });
    writeRecord(scratch.state, sampleRecord({ keeper: liveMark(), directory: before }));
    await listen(join(before, "keeper.sock"), keeperOf(id, scratch));
    const now = scratch.runtimeOf(id);
    expect(await gatherOne(scratch)).toMatchObject({ keeper: "answers", runtime: [before, now] });
  });

  test("not by anything else that lies there", async () => {
    const scratch = makeScratch();
    scratch.runtimeOf("not-an-id");
    writeFileSync(join(scratch.root, "bbbbbbbbbb"), "");
    symlinkSync("/", join(scratch.root, "cccccccccc"));
    expect(await gatherOne(scratch, { ...seen("../../etc", ""), own: ["../../etc", ""] })).toBeUndefined();
    rmSync(scratch.root, { recursive: true });
    expect(await gatherOne(scratch)).toBeUndefined();
  });
});

describe("its box", () => {
  test("may be one of which nothing can be said, since its engine does not answer", async () => {
    const scratch = makeScratch();
    session(scratch, deadMark());
    expect(await gatherOne(scratch, { ...seen(), unknown: new Set([id]) })).toMatchObject({ box: "unknown" });
    // What one wall sees counts more than what another cannot.
    expect(await gatherOne(scratch, { ...seen(id), unknown: new Set([id]) })).toMatchObject({ box: "there" });
    expect(await gatherOne(scratch)).toMatchObject({ box: "gone" });
  });

  test("is asked for with the records that were read, at last", async () => {
    const scratch = makeScratch();
    session(scratch);
    const engine = { endpoint: "unix:///run/docker.sock", service: null };
    const directory = join(scratch.root, id);
    writeRecord(scratch.state, sampleRecord({ keeper: deadMark(), directory, engine }));
    const asked: unknown[] = [];
    const boxes: Places["boxes"] = async (records) => {
      asked.push(...records.map((record) => [record.id, record.engine]));
      return seen();
    };
    await gather({ stateDirectory: scratch.state, runtimeRoots: [scratch.root], boxes, waitMs: 150 });
    expect(asked).toEqual([[id, engine]]);
  });

  test("is seen alone, where it bears the name of this state directory", async () => {
    expect(await gatherOne(makeScratch(), { ...seen(id), own: [id] })).toEqual({
      id,
      record: null,
      damaged: null,
      keeper: "absent",
      socket: null,
      process: "unknown",
      box: "there",
      runtime: [],
    });
  });

  test("is not seen twice, where there is more of its session", async () => {
    const scratch = makeScratch();
    session(scratch, deadMark());
    expect(await gatherOne(scratch, { ...seen(id), own: [id] })).toMatchObject({ box: "there", process: "dead" });
  });

  test("is no stray of a session that has just begun", async () => {
    const scratch = makeScratch();
    const boxes = async () => {
      writeRecord(scratch.state, sampleRecord({ keeper: liveMark(), phase: "starting" }));
      return { ...seen(id), own: [id] };
    };
    expect(await gather({ stateDirectory: scratch.state, runtimeRoots: [scratch.root], boxes })).toEqual([]);
  });
});

describe("what happens while one looks", () => {
  /** Does something when the keeper is asked, then says nothing. */
  async function meanwhile(scratch: Scratch, keeper: ReturnType<typeof liveMark>, act: () => void): Promise<void> {
    await listen(session(scratch, keeper), () => {
      act();
      return "";
    });
  }

  test("an end that is written down is not taken for a death", async () => {
    const scratch = makeScratch();
    const directory = join(scratch.root, id);
    await meanwhile(scratch, deadMark(), () =>
      writeRecord(scratch.state, sampleRecord({ ...ended, keeper: deadMark(), directory })),
    );
    expect((await gatherOne(scratch))?.record?.phase).toBe("ended");
  });

  test("a session that vanishes is not seen", async () => {
    const scratch = makeScratch();
    await meanwhile(scratch, liveMark(), () => {
      removeSession(scratch.state, id);
      rmSync(join(scratch.root, id), { recursive: true });
    });
    expect(await gatherOne(scratch)).toBeUndefined();
  });

  test.each([true, false])("a session that ends at the moment its keeper refuses is not seen: %s", async (ends) => {
    const scratch = makeScratch();
    // Where there is a file, nobody listens.
    writeFileSync(join(scratch.runtimeOf(id), "keeper.sock"), "");
    const looking = gatherOne(scratch);
    // It has been asked, and has yet to hear the answer.
    if (ends) rmSync(join(scratch.root, id), { recursive: true });
    expect((await looking)?.keeper).toBe(ends ? undefined : "refused");
  });

  test("a session that begins has its record", async () => {
    const scratch = makeScratch();
    const directory = scratch.runtimeOf(id);
    await listen(join(directory, "keeper.sock"), () => {
      writeRecord(scratch.state, sampleRecord({ keeper: liveMark(), directory, phase: "starting" }));
      return null;
    });
    expect(await gatherOne(scratch)).toMatchObject({ record: { phase: "starting" }, process: "alive" });
  });
});
