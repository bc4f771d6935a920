import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Connector } from "../../src/sandbox/sandbox.ts";

export function frame(type: string, payload: Uint8Array | string = ""): Buffer {
  const bytes = Buffer.from(payload);
  const header = Buffer.alloc(5);
  header.write(type, "latin1");
  header.writeUInt32LE(bytes.length, 1);
  return Buffer.concat([header, bytes]);
}

export const started = frame("P");
export const succeeded = frame("X", Buffer.of(0, 0));

export function credit(bytes: number): Buffer {
  const payload = Buffer.alloc(5);
  payload.writeUInt32LE(bytes, 1);
  return frame("K", payload);
}

/** What the sandbox has sent on one connection, and the means to answer. */
export interface Talk {
  readonly socket: Socket;
  readonly frames: readonly { readonly type: string; readonly payload: Buffer }[];
  /** Resolves with the first frame of this type, or with null when the connection has ended without it. */
  heard(type: string): Promise<Buffer | null>;
  readonly closed: Promise<void>;
}

export interface Peer extends Connector, AsyncDisposable {
  readonly talks: readonly Talk[];
}

/** Something that pretends to be a warden. Its script begins when the order is complete. */
export async function startPeer(script: (talk: Talk) => unknown): Promise<Peer> {
  const directory = mkdtempSync(join(tmpdir(), "podbot-peer-"));
  const path = join(directory, "socket");
  const talks: Talk[] = [];
  const server = createServer((socket) => {
    const talk = listen(socket);
    talks.push(talk);
    void Promise.race([talk.heard("G"), talk.heard("Q")]).then((order) => order !== null && script(talk));
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return {
    id: "abcdefghij",
    talks,
    connect: () =>
      new Promise((resolve, reject) => {
        const socket = connect(path, () => resolve(socket)).once("error", reject);
      }),
    async [Symbol.asyncDispose]() {
      for (const { socket } of talks) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
      rmSync(directory, { recursive: true });
    },
  };
}

function listen(socket: Socket): Talk {
  const frames: { type: string; payload: Buffer }[] = [];
  const waiting = new Map<string, (payload: Buffer | null) => void>();
  let unread = Buffer.alloc(0);
  socket.on("error", () => {});
  socket.on("data", (chunk) => {
    unread = Buffer.concat([unread, chunk]);
    while (unread.length >= 5 && unread.length >= 5 + unread.readUInt32LE(1)) {
      const end = 5 + unread.readUInt32LE(1);
      const next = { type: unread.toString("latin1", 0, 1), payload: unread.subarray(5, end) };
      unread = unread.subarray(end);
      frames.push(next);
      waiting.get(next.type)?.(next.payload);
      waiting.delete(next.type);
    }
  });
  const closed = new Promise<void>((resolve) => {
    socket.on("close", () => {
      for (const settle of waiting.values()) settle(null);
      resolve();
    });
  });
  return {
    socket,
    frames,
    closed,
    heard: (type) =>
      new Promise((resolve) => {
        const found = frames.find((one) => one.type === type);
        if (found !== undefined) resolve(found.payload);
        else if (socket.destroyed) resolve(null);
        else waiting.set(type, resolve);
      }),
  };
}

/** How a promise ended, without throwing. */
export async function outcome(
  promise: Promise<unknown>,
): Promise<{ readonly value?: unknown; readonly error?: unknown }> {
  try {
    return { value: await promise };
  } catch (error) {
    return { error };
  }
}
