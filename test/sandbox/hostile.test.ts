// @module-tag security
import { once } from "node:events";
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, onTestFinished, test } from "vitest";
import { openSandbox } from "../../src/sandbox/open.ts";
import type { Command, Process, Sandbox } from "../../src/sandbox/sandbox.ts";
import { credit, frame, outcome, type Peer, started, startPeer, succeeded, type Talk } from "./peer.ts";

const anything: Command = { argv: ["anything"] };

async function pretend(script: (talk: Talk) => unknown): Promise<{ readonly sandbox: Sandbox; readonly peer: Peer }> {
  const peer = await startPeer(script);
  onTestFinished(() => peer[Symbol.asyncDispose]());
  return { sandbox: openSandbox(peer), peer };
}

/** Answers the order with these bytes, and then says nothing. */
async function answered(...bytes: readonly Buffer[]) {
  return pretend(({ socket }) => socket.write(Buffer.concat(bytes)));
}

/** A process that has been started and of which the peer says nothing more by itself. */
async function begun(command: Command = anything): Promise<{ process: Process; talk: Talk; sandbox: Sandbox }> {
  const { sandbox, peer } = await answered(started);
  const process = await sandbox.exec(command);
  return { process, talk: peer.talks[0] as Talk, sandbox };
}

describe("before the start", () => {
  test.each<[string, readonly Buffer[]]>([
    ["output", [frame("O", "x")]],
    ["credit", [credit(1)]],
    ["an end", [succeeded]],
    ["garbage", [Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n")]],
    ["a huge length", [Buffer.from("O\xff\xff\xff\xff", "latin1")]],
    ["an odd failure", [frame("F", Buffer.of(9, 0, 0, 0, 0))]],
    ["a complaint", [frame("B", "no such frame")]],
  ])("%s is refused and the connection closed", async (_name, bytes) => {
    const { sandbox, peer } = await answered(...bytes);
    expect(await outcome(sandbox.exec(anything))).toMatchObject({ error: { code: "PROTOCOL" } });
    await peer.talks[0]?.closed;
  });

  test.each<[string, number, number, string, RegExp]>([
    ["the order", 0, 22, "EXEC_FAILED", /refused the order: EINVAL/],
    ["the directory", 1, 13, "EXEC_FAILED", /"\." cannot be entered: permission denied/],
    ["the user", 2, 1, "EXEC_FAILED", /user \?:\? was refused: it is not permitted/],
    ["the execution", 3, 8, "COMMAND_NOT_EXECUTABLE", /not a program/],
    ["the execution for want of memory", 3, 12, "EXEC_FAILED", /not enough memory/],
    ["the execution for no known reason", 3, 4_000_000_000, "COMMAND_NOT_EXECUTABLE", /error 4000000000/],
    ["the means", 4, 11, "EXEC_FAILED", /too many processes/],
  ])("a failure of %s is told in words", async (_name, stage, errno, code, message) => {
    const payload = Buffer.of(stage, 0, 0, 0, 0);
    payload.writeUInt32LE(errno, 1);
    const { sandbox, peer } = await answered(frame("F", payload));
    expect(await outcome(sandbox.exec(anything))).toMatchObject({
      error: { code, message: expect.stringMatching(message) },
    });
    await peer.talks[0]?.closed;
  });

  test("a connection that ends is a lost sandbox", async () => {
    const { sandbox } = await pretend(({ socket }) => socket.end());
    expect(await outcome(sandbox.exec(anything))).toMatchObject({ error: { code: "BOX_LOST" } });
  });

  test("a connection that had ended already is a lost sandbox", async () => {
    const { peer } = await pretend(() => {});
    const sandbox = openSandbox({
      id: peer.id,
      connect: async () => {
        const stream = await peer.connect();
        stream.destroy();
        await once(stream, "close");
        return stream;
      },
    });
    expect(await outcome(sandbox.exec(anything))).toMatchObject({ error: { code: "BOX_LOST" } });
  });

  test("no answer at all ends with the time that was allowed", async () => {
    const { sandbox, peer } = await pretend(() => {});
    expect(await outcome(sandbox.exec({ ...anything, timeoutMs: 10, graceMs: 10 }))).toMatchObject({
      error: { code: "EXEC_FAILED", message: expect.stringContaining("not started in time") },
    });
    await peer.talks[0]?.closed;
  });

  test("no answer at all ends with the signal", async () => {
    const controller = new AbortController();
    const { sandbox, peer } = await pretend(() => controller.abort(new Error("enough")));
    expect(await outcome(sandbox.exec({ ...anything, signal: controller.signal }))).toMatchObject({
      error: { message: "enough" },
    });
    await peer.talks[0]?.closed;
  });

  test("a signal during the connecting leaves no connection", async () => {
    const controller = new AbortController();
    const { peer } = await pretend(() => {});
    const slow = openSandbox({
      id: peer.id,
      connect: async () => {
        const stream = await peer.connect();
        controller.abort(new Error("enough"));
        return stream;
      },
    });
    expect(await outcome(slow.exec({ ...anything, signal: controller.signal }))).toMatchObject({
      error: { message: "enough" },
    });
    await peer.talks[0]?.closed;
    expect(peer.talks[0]?.frames).toEqual([]);
  });

  test("a connecting that fails because of the signal fails with its reason, and otherwise with its own", async () => {
    const controller = new AbortController();
    const broken = openSandbox({ id: "abcdefghij", connect: () => Promise.reject(new Error("no way")) });
    const execution = () => outcome(broken.exec({ ...anything, signal: controller.signal }));
    expect(await execution()).toMatchObject({ error: { message: "no way" } });
    const pending = execution();
    controller.abort(new Error("enough"));
    expect(await pending).toMatchObject({ error: { message: "enough" } });
  });

  test("a signal that is aborted already connects nowhere", async () => {
    const { sandbox, peer } = await pretend(() => {});
    const signal = AbortSignal.abort(new Error("enough"));
    expect(await outcome(sandbox.exec({ ...anything, signal }))).toMatchObject({ error: { message: "enough" } });
    expect(peer.talks).toEqual([]);
  });
});

describe("a process that has started", () => {
  test.each<[string, readonly Buffer[]]>([
    ["a second start", [started]],
    ["a failure", [frame("F", Buffer.of(3, 2, 0, 0, 0))]],
    ["garbage", [Buffer.from("\0\0\0\0\0\0\0\0")]],
    ["a huge length", [Buffer.from("R\x01\x00\x04\x00", "latin1")]],
    ["output after its end", [frame("o"), frame("O", "x")]],
    ["two ends of errors", [frame("r"), frame("r")]],
    ["more output than was granted", [...Array<Buffer>(4).fill(frame("O", Buffer.alloc(262_144))), frame("O", "x")]],
    ["more errors than were granted", [...Array<Buffer>(4).fill(frame("R", Buffer.alloc(262_144))), frame("R", "x")]],
    ["an end of kind 7", [frame("X", Buffer.of(7, 0))]],
    ["an end by signal 0", [frame("X", Buffer.of(1, 0))]],
    ["a stop by signal 200", [frame("Z", Buffer.of(200))]],
    ["a complaint", [frame("B", "what?")]],
  ])("is given up after %s", async (_name, bytes) => {
    const { process, talk } = await begun();
    talk.socket.write(Buffer.concat(bytes));
    expect(await outcome(process.exited)).toMatchObject({ error: { code: "PROTOCOL" } });
    await talk.closed;
    expect(process.stdout.errored).toMatchObject({ code: "PROTOCOL" });
    expect(process.stderr.errored).toMatchObject({ code: "PROTOCOL" });
    expect(process.stdin.errored).toMatchObject({ code: "PROTOCOL" });
  });

  test("is lost with its connection, and whoever reads or writes learns it", async () => {
    const { process, talk } = await begun();
    const reading = outcome(process.stdout.toArray());
    const writing = new Promise((resolve) => process.stdin.write(Buffer.alloc(1_000_000), resolve));
    await talk.heard("I");
    talk.socket.destroy();
    expect(await outcome(process.exited)).toMatchObject({ error: { code: "BOX_LOST" } });
    expect(await reading).toMatchObject({ error: { code: "BOX_LOST" } });
    expect(await writing).toMatchObject({ code: "BOX_LOST" });
  });

  test("is no crash when it is lost and nobody listens", async () => {
    const { process, talk } = await begun();
    talk.socket.pause();
    process.stdin.write(Buffer.alloc(1_000_000));
    await sleep(20);
    // With input that it has not read: that breaks the connection instead of ending it.
    talk.socket.destroy();
    await talk.closed;
    await sleep(20);
  });

  test("has its code from the last frame, and what follows is not even read", async () => {
    for (const [kind, number, code] of [
      [0, 0, 0],
      [0, 255, 255],
      [1, 9, 137],
      [1, 64, 192],
    ] as const) {
      const { process, talk } = await begun();
      talk.socket.write(Buffer.concat([frame("X", Buffer.of(kind, number)), Buffer.from("garbage")]));
      expect(await process.exited).toEqual({ code, killed: false });
      await talk.closed;
      process.kill("SIGTERM");
    }
  });

  test("has output that ends with it, though it was never ended", async () => {
    const { process, talk } = await begun();
    talk.socket.write(Buffer.concat([frame("O", "abc"), succeeded]));
    expect(await process.exited).toEqual({ code: 0, killed: false });
    expect(Buffer.concat(await process.stdout.toArray()).toString()).toBe("abc");
    expect(await process.stderr.toArray()).toEqual([]);
  });

  test("keeps little of output in tiny frames among others, while nobody reads", async () => {
    const { process, talk } = await begun();
    const noise = Buffer.concat([frame("O", "x"), ...Array<Buffer>(400).fill(frame("Y"))]);
    const before = memory();
    for (let sent = 0; sent < 20_000; sent++) {
      if (!talk.socket.write(noise)) await once(talk.socket, "drain");
    }
    talk.socket.write(frame("r"));
    await once(process.stderr.resume(), "end");
    // Kept as views of what was received, it would be 40 MB.
    expect(memory() - before).toBeLessThan(10_000_000);
    talk.socket.write(succeeded);
    expect(Buffer.concat(await process.stdout.toArray()).length).toBe(20_000);
  });

  test("that ends while input is on its way is no error of the sandbox", async () => {
    const { process, talk } = await begun();
    const writing = new Promise((resolve) => process.stdin.write(Buffer.alloc(1_000_000), resolve));
    await talk.heard("I");
    talk.socket.write(succeeded);
    expect(await process.exited).toEqual({ code: 0, killed: false });
    expect(await writing).toMatchObject({ code: "EPIPE" });
  });

  test("brings an exception of a listener to light, and is given up", async () => {
    const { process, talk } = await begun();
    const thrown = new Promise((resolve) => {
      const others = globalThis.process.listeners("uncaughtException");
      globalThis.process.removeAllListeners("uncaughtException").once("uncaughtException", (error) => {
        for (const listener of others) globalThis.process.on("uncaughtException", listener);
        resolve(error);
      });
    });
    process.stdout.on("data", () => {
      throw new Error("mine");
    });
    await sleep(10);
    talk.socket.write(frame("O", "x"));
    expect(await thrown).toMatchObject({ message: "mine" });
    expect(await outcome(process.exited)).toMatchObject({ error: { message: "mine" } });
  });
});

describe("credit", () => {
  test("bounds what is sent as input, and frames bound the pieces", async () => {
    const { process, talk } = await begun();
    let isWritten = false;
    process.stdin.write(Buffer.alloc(300_000, 1), () => {
      isWritten = true;
    });
    const sent = () => talk.frames.filter(({ type }) => type === "I").map(({ payload }) => payload.length);
    while (sent().length < 4) await sleep(5);
    await sleep(20);
    expect(sent()).toEqual([65_536, 65_536, 65_536, 65_536]);
    expect(isWritten).toBe(false);
    talk.socket.write(credit(10));
    while (sent().length < 5) await sleep(5);
    expect(sent()[4]).toBe(10);
    talk.socket.write(credit(1_000_000));
    process.stdin.end();
    expect(await talk.heard("E")).not.toBeNull();
    expect(sent()[5]).toBe(300_000 - 262_144 - 10);
    expect(isWritten).toBe(true);
  });

  test("is not granted for what nobody has taken, and is for what was thrown away", async () => {
    const { process, talk } = await begun();
    const grants = () => talk.frames.filter(({ type }) => type === "K").map(({ payload }) => payload.readUInt32LE(1));
    talk.socket.write(Buffer.concat(Array<Buffer>(4).fill(frame("O", Buffer.alloc(262_144)))));
    talk.socket.write(frame("R", "still heard"));
    const [heard] = (await once(process.stderr, "data")) as [Buffer];
    expect(heard.toString()).toBe("still heard");
    expect(grants()).toEqual([]);
    process.stdout.destroy();
    await talk.heard("D");
    await talk.heard("K");
    expect(grants()).toEqual([1_048_576]);
    talk.socket.write(Buffer.concat(Array<Buffer>(4).fill(frame("O", Buffer.alloc(262_144)))));
    while (grants().length < 3) await sleep(5);
    expect(grants().reduce((sum, bytes) => sum + bytes)).toBe(2_097_152);
  });

  test("is not sent to a peer that does not read", async () => {
    const { process, talk } = await begun();
    talk.socket.pause();
    process.stdin.write(Buffer.alloc(262_144));
    talk.socket.write(credit(0xffff_ffff));
    let isWritten = false;
    process.stdin.write(Buffer.alloc(10_000_000), () => {
      isWritten = true;
    });
    process.stdout.resume();
    for (let sent = 0; sent < 4; sent++) talk.socket.write(frame("O", Buffer.alloc(262_144)));
    talk.socket.write(frame("R", "x"));
    await once(process.stderr, "data");
    expect(isWritten).toBe(false);
    expect(process.stdin.writableLength).toBeGreaterThan(9_000_000);
    talk.socket.resume();
    expect(await talk.heard("K")).not.toBeNull();
    while (!isWritten) await sleep(5);
  });
});

describe("an end that does not come", () => {
  test("is not waited for after the signal to kill has been sent", async () => {
    const { process, talk } = await begun({ ...anything, timeoutMs: 1, graceMs: 1_000 });
    talk.socket.write(frame("O", "so far"));
    expect(await process.exited).toEqual({ code: 124, killed: true });
    expect(Buffer.concat(await process.stdout.toArray()).toString()).toBe("so far");
    await talk.closed;
    const signals = talk.frames.filter(({ type }) => type === "S").map(({ payload }) => payload[0]);
    expect(signals).toEqual([15, 18, 9]);
  });

  test("is told as a kill where a signal asked for it", async () => {
    const controller = new AbortController();
    const { process } = await begun({ ...anything, signal: controller.signal, graceMs: 0 });
    controller.abort();
    controller.abort();
    expect(await process.exited).toEqual({ code: 137, killed: true });
  });

  test("is not waited for when quitting", async () => {
    const { sandbox, peer } = await pretend(() => {});
    await sandbox.quit(1_000);
    await peer.talks[0]?.closed;
    expect(peer.talks[0]?.frames.map(({ type }) => type)).toEqual(["Q"]);
  });
});

describe("quitting", () => {
  test.each<[string, (talk: Talk) => unknown]>([
    ["all have gone", ({ socket }) => socket.write(succeeded)],
    ["the warden cannot", ({ socket }) => socket.write(frame("F", Buffer.of(0, 22, 0, 0, 0)))],
    ["the answer is garbage", ({ socket }) => socket.write("garbage")],
    ["the connection ends", ({ socket }) => socket.end()],
    ["the connection is closed", ({ socket }) => socket.destroy()],
  ])("is over when %s", async (_name, script) => {
    const { sandbox, peer } = await pretend(script);
    await sandbox.quit(20_000);
    await peer.talks[0]?.closed;
  });

  test("a sandbox that nobody answers for succeeds", async () => {
    const nobody = openSandbox({ id: "abcdefghij", connect: () => Promise.reject(new Error("gone")) });
    await nobody.quit(20_000);
  });

  test("a sandbox that cannot be reached in time succeeds", async () => {
    const unreachable = openSandbox({
      id: "abcdefghij",
      connect: (signal) =>
        new Promise((_resolve, reject) => signal?.addEventListener("abort", () => reject(signal.reason))),
    });
    await unreachable.quit(20);
  });
});

describe("an upload", () => {
  test("fails with the sandbox", async () => {
    const { sandbox } = await pretend(({ socket }) => socket.end(started));
    const upload = sandbox.upload(Readable.from([Buffer.alloc(1024)]), "/tmp");
    expect(await outcome(upload)).toMatchObject({ error: { code: "BOX_LOST" } });
  });

  test("keeps little of what pretends to be tar's complaint", async () => {
    const { sandbox } = await pretend(({ socket }) => {
      const loud = Array<Buffer>(3).fill(frame("R", Buffer.alloc(65_536, "!")));
      socket.write(Buffer.concat([started, ...loud, frame("X", Buffer.of(0, 2))]));
    });
    const { error } = await outcome(sandbox.upload(Readable.from([Buffer.alloc(1024)]), "/tmp"));
    expect(error).toMatchObject({ code: "UPLOAD_FAILED" });
    expect((error as Error).message.length).toBeLessThan(4200);
  });

  test("has done its work when tar says so, whether or not it wanted all", async () => {
    const { sandbox } = await pretend(({ socket }) => socket.write(Buffer.concat([started, frame("i"), succeeded])));
    const archive = Readable.from(endless());
    await sandbox.upload(archive, "/tmp");
    expect(archive.destroyed).toBe(true);
  });
});

test("a stop is told, even one that came together with the start", async () => {
  const stop = frame("Z", Buffer.of(20));
  const { sandbox, peer } = await answered(started, stop);
  const process = await sandbox.exec(anything, { rows: 0, columns: 1e9 });
  expect(await peer.talks[0]?.heard("T")).toEqual(Buffer.of(1, 0, 255, 255));
  let stops = 0;
  await new Promise<void>((resolve) => process.onStop(() => resolve(void stops++)));
  peer.talks[0]?.socket.write(Buffer.concat([frame("Y"), stop]));
  while (stops < 2) await sleep(5);
  process.onStop(() => stops++);
  process.resize({ rows: Number.NaN, columns: 80.5 });
  expect(await peer.talks[0]?.heard("W")).toEqual(Buffer.of(1, 0, 80, 0));
  process.stdin.end();
  peer.talks[0]?.socket.write(frame("R", "x"));
  expect(await outcome(process.exited)).toMatchObject({ error: { code: "PROTOCOL" } });
  expect(peer.talks[0]?.frames.map(({ type }) => type)).not.toContain("E");
  expect(stops).toBe(3);
});

/** What is in use and not merely not yet collected. */
function memory(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

async function* endless(): AsyncGenerator<Buffer> {
  for (;;) yield Buffer.alloc(65_536);
}
