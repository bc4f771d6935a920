// @module-tag security
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, realpathSync, rmSync, statSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { peerOf } from "../../src/machine/peer.ts";
import { markOf } from "../../src/machine/process-mark.ts";
import { type Identify, openReception } from "../../src/wall/reception.ts";

const token = randomBytes(32);
const hello = Buffer.concat([Buffer.from("podbot\x001"), token]);
const complaint = Buffer.concat([Buffer.from("podbot\0!"), token]);

async function open(identify: Identify | null = null) {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), "podbot-reception-")));
  const path = join(directory, "s.sock");
  const reception = await openReception(path, token, identify);
  onTestFinished(() => {
    reception[Symbol.dispose]();
    rmSync(directory, { recursive: true, force: true });
  });
  const dial = async (said: Buffer | string = ""): Promise<Socket> => {
    const socket = connect(path);
    socket.on("error", () => {});
    onTestFinished(() => void socket.destroy());
    await once(socket, "connect");
    if (said.length > 0) socket.write(said);
    return socket;
  };
  return { path, reception, dial };
}

const isCalled = (called: Promise<void>, ms = 100) => Promise.race([called.then(() => true), wait(ms, false)]);
const closed = (socket: Socket) => (socket.destroyed ? Promise.resolve() : once(socket.resume(), "close"));

describe("the warden's hello", () => {
  test("is its call, and its connection takes orders", async () => {
    const { reception, dial } = await open();
    const socket = await dial(hello);
    await reception.called;
    const connection = await reception.connect();
    connection.write("order");
    expect((await once(socket, "data")).toString()).toBe("order");
  });

  test("names the process that has made its connection, which takes orders afterwards", async () => {
    const { reception, dial } = await open(peerOf);
    const stranger = await dial();
    const socket = await dial(hello);
    await reception.called;
    expect(reception.caller()).toEqual({ uid: process.getuid?.(), process: markOf(process.pid) });
    const connection = await reception.connect();
    connection.write("order");
    expect((await once(socket, "data")).toString()).toBe("order");
    connection.resume();
    socket.end("answer");
    expect((await once(connection, "data")).toString()).toBe("answer");
    stranger.destroy();
    // The next is the same box's.
    await dial(hello);
    await reception.connect();
  });

  test("names no process where the kernel cannot be asked", async () => {
    const { reception, dial } = await open(() => Promise.reject(new Error("no such program")));
    await dial(hello);
    await reception.called;
    expect(reception.caller()).toBeNull();
  });

  test("may come in pieces", async () => {
    const { reception, dial } = await open();
    const socket = await dial(hello.subarray(0, 9));
    await wait(20);
    socket.write(hello.subarray(9));
    await reception.called;
  });

  test.each([
    ["another token", Buffer.concat([Buffer.from("podbot\x001"), randomBytes(32)])],
    ["another greeting", Buffer.concat([Buffer.from("podbot\x002"), token])],
    ["more than the hello", Buffer.concat([hello, Buffer.from("x")])],
    ["a complaint with another token", Buffer.concat([Buffer.from("podbot\0!"), randomBytes(32), Buffer.from("x")])],
    ["something else", Buffer.alloc(64, "x")],
  ])("is not that of a stranger: %s", async (_, said) => {
    const { reception, dial } = await open();
    const stranger = await dial(said);
    await closed(stranger);
    expect(await isCalled(reception.called)).toBe(false);
    await dial(hello);
    await reception.called;
  });
});

describe("a stranger who says nothing", () => {
  test("is not waited for long", async () => {
    const { reception, dial } = await open();
    const stranger = await dial();
    const before = performance.now();
    await closed(stranger);
    expect(performance.now() - before).toBeGreaterThan(1_000);
    expect(await isCalled(reception.called, 10)).toBe(false);
  });

  test("keeps nobody away, however many there are", async () => {
    const { reception, dial } = await open();
    const strangers = await Promise.all(Array.from({ length: 80 }, () => dial().then((socket) => socket.resume())));
    await dial(hello);
    await reception.called;
    const hungUp = () => strangers.filter(({ readableEnded, destroyed }) => readableEnded || destroyed).length;
    await expect.poll(hungUp).toBeGreaterThan(40);
  });
});

describe("a warden that cannot begin", () => {
  test("is heard with its words", async () => {
    const { reception, dial } = await open();
    (await dial(Buffer.concat([complaint, Buffer.from("mount /work")]))).end();
    await expect(reception.called).rejects.toMatchObject({ code: "WALL_FAILED", message: "mount /work" });
  });

  test("is heard in pieces, to its end", async () => {
    const { reception, dial } = await open();
    const socket = await dial(complaint);
    for (const piece of ["the filter ", "cannot ", "be installed"]) {
      await wait(10);
      socket.write(piece);
    }
    await wait(10);
    socket.end();
    await expect(reception.called).rejects.toMatchObject({ message: "the filter cannot be installed" });
  });

  test("is heard without words, and when it says too much", async () => {
    const silent = await open();
    (await silent.dial(complaint)).end();
    await expect(silent.reception.called).rejects.toMatchObject({ message: "" });
    const loud = await open();
    await loud.dial(Buffer.concat([complaint, Buffer.alloc(1_000_000, "x")]));
    await expect(loud.reception.called).rejects.toMatchObject({ message: "x".repeat(4_096) });
  });

  test("takes nothing back once it has called", async () => {
    const { reception, dial } = await open();
    await dial(hello);
    await reception.called;
    (await dial(Buffer.concat([complaint, Buffer.from("late")]))).end();
    await wait(50);
    await expect(reception.called).resolves.toBeUndefined();
  });

  test("troubles nobody who does not wait for it", async () => {
    const { dial } = await open();
    (await dial(Buffer.concat([complaint, Buffer.from("unheard")]))).end();
    await wait(50);
  });
});

describe("whether anybody is connected", () => {
  test("is known, and when the last one has gone", async () => {
    const { reception, dial } = await open();
    expect(reception.isOpen()).toBe(false);
    await reception.emptied();
    const [first, second] = [await dial(hello), await dial(hello)];
    await expect.poll(() => reception.isOpen()).toBe(true);
    let isEmpty = false;
    const emptied = reception.emptied().then(() => {
      isEmpty = true;
    });
    first.destroy();
    await wait(50);
    expect(isEmpty).toBe(false);
    expect(reception.isOpen()).toBe(true);
    second.destroy();
    await emptied;
    expect(reception.isOpen()).toBe(false);
  });

  test("is known of a connection that is in use, too", async () => {
    const { reception, dial } = await open();
    const socket = await dial(hello);
    await reception.connect();
    expect(reception.isOpen()).toBe(true);
    socket.destroy();
    await reception.emptied();
  });
});

test("whoever waits is told when it closes, and nobody can wait after that", async () => {
  const { reception } = await open();
  const waiting = reception.connect();
  reception[Symbol.dispose]();
  await expect(waiting).rejects.toMatchObject({ code: "BOX_LOST" });
  await expect(reception.connect()).rejects.toMatchObject({ code: "BOX_LOST" });
});

test("any user of the box can dial", async () => {
  const { path } = await open();
  expect(statSync(path).mode & 0o777).toBe(0o666);
});
