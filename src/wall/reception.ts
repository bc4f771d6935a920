import { timingSafeEqual } from "node:crypto";
import { chmodSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { SessionError, WallError } from "../errors.ts";
import type { Peer } from "../machine/peer.ts";
import { openSocketPath } from "../machine/socket-path.ts";

/** What a connection of the warden begins with; the token follows. */
const greeting = Buffer.from("podbot\u00001", "latin1");
/** And if it cannot be the warden: why follows the token. */
const complaint = Buffer.from("podbot\u0000!", "latin1");
const helloBytes = greeting.length + 32;
const longestComplaint = 4_096;

/** Every process in the box can connect. Those that have not said the hello are few, and not for long. */
const mostStrangers = 32;
const helloMs = 2_000;

/** Where the warden dials in. */
export interface Reception extends Disposable {
  /** A connection on which an order can be given. */
  connect(signal?: AbortSignal): Promise<Duplex>;
  /** Resolves when the warden has called for the first time; rejects with its words if it says why it cannot. */
  readonly called: Promise<void>;
  /** Who called first, as the kernel says; null where it was not asked. Settled when `called` is. */
  caller(): Peer | null;
  /** Whether any connection is open. */
  isOpen(): boolean;
  /** Resolves when the last open connection has ended: the warden is gone, or about to dial again. */
  emptied(): Promise<void>;
}

/** Asks who is at the other end of a connection. */
export type Identify = (socket: Socket) => Promise<Peer | null>;

/**
 * Listens at a path that will be seen inside, for connections of processes that know the token. With `identify`, the
 * kernel is asked which process has made the first of them, while nothing else runs inside that could have it.
 */
export async function openReception(path: string, token: Buffer, identify: Identify | null = null): Promise<Reception> {
  const waiting = new Set<Waiter>();
  const parked = new Set<Socket>();
  const strangers = new Set<Socket>();
  let isClosed = false;
  const open = new Set<Socket>();
  let whenEmpty: (() => void)[] = [];
  let greet = () => {};
  let despair = (_words: string) => {};
  const called = new Promise<void>((resolve, reject) => {
    greet = resolve;
    despair = (words) => reject(new WallError("WALL_FAILED", words));
  });
  // Whoever does not wait for the first call need not hear why there is none.
  called.catch(() => {});

  let asking: Promise<Peer | null> | null = null;
  let caller: Peer | null = null;
  const meet = async (socket: Socket, ask: Identify) => {
    // Node reads nothing from what it lends to another process, until this process resumes it.
    socket.pause();
    asking ??= ask(socket).catch(() => null);
    caller = await asking;
    strangers.delete(socket);
    if (!socket.destroyed) welcome(socket);
  };
  const welcome = (socket: Socket) => {
    greet();
    const [waiter] = waiting;
    if (waiter === undefined) park(socket, parked);
    else waiter.take(socket);
  };
  const server = createServer((socket) => {
    // A connection that breaks has an end like any other; whoever uses it hears of it.
    socket.on("error", () => {});
    const [oldest] = strangers;
    if (strangers.size >= mostStrangers) oldest?.destroy();
    strangers.add(socket);
    open.add(socket);
    socket.once("close", () => {
      strangers.delete(socket);
      open.delete(socket);
      if (open.size > 0) return;
      for (const tell of whenEmpty) tell();
      whenEmpty = [];
    });
    readHello(socket, token, despair, () => {
      if (identify !== null) return void meet(socket, identify);
      strangers.delete(socket);
      welcome(socket);
    });
  });
  const place = openSocketPath(path);
  try {
    await listen(server, place.address);
    // The box's user may be anyone: what keeps others out is the directory above.
    chmodSync(path, 0o666);
  } catch (error) {
    place[Symbol.dispose]();
    throw error;
  }

  return {
    called,
    caller: () => caller,
    isOpen: () => open.size > 0,
    emptied: () => new Promise((resolve) => (open.size === 0 ? resolve() : whenEmpty.push(resolve))),
    connect: (signal) => (isClosed ? Promise.reject(closed()) : nextConnection(parked, waiting, signal)),
    [Symbol.dispose]() {
      isClosed = true;
      server.close();
      place[Symbol.dispose]();
      for (const socket of [...parked, ...strangers]) socket.destroy();
      for (const waiter of waiting) waiter.abandon(closed());
    },
  };
}

function listen(server: Server, address: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(address, () => {
      // A connection that could not be accepted is the other end's loss; it dials again.
      server.on("error", () => {});
      resolve();
    });
  });
}

function readHello(socket: Socket, token: Buffer, despair: (words: string) => void, accept: () => void): void {
  const hello = Buffer.concat([greeting, token]);
  const timer = setTimeout(() => socket.destroy(), helloMs);
  let said = Buffer.alloc(0);
  const onData = (bytes: Buffer) => {
    said = Buffer.concat([said, bytes]);
    if (said.length < helloBytes) return;
    clearTimeout(timer);
    socket.off("data", onData);
    if (startsWith(said, Buffer.concat([complaint, token]))) readComplaint(socket, said.subarray(helloBytes), despair);
    // The warden says no more before it has an order.
    else if (said.length > helloBytes || !startsWith(said, hello)) socket.destroy();
    else accept();
  };
  socket.on("data", onData);
  socket.once("close", () => clearTimeout(timer));
}

function startsWith(said: Buffer, hello: Buffer): boolean {
  return timingSafeEqual(said.subarray(0, helloBytes), hello);
}

function readComplaint(socket: Socket, begun: Buffer, despair: (words: string) => void): void {
  let words = begun;
  socket.on("data", (bytes: Buffer) => {
    words = Buffer.concat([words, bytes]);
    if (words.length > longestComplaint) socket.destroy();
  });
  socket.once("close", () => despair(words.subarray(0, longestComplaint).toString()));
}

/** Keeps an idle connection, and notices if it ends. */
function park(socket: Socket, parked: Set<Socket>): void {
  parked.add(socket);
  socket.once("close", () => parked.delete(socket));
  socket.on("data", breach);
  socket.resume();
}

function breach(this: Socket): void {
  this.destroy();
}

interface Waiter {
  take(socket: Socket): void;
  abandon(reason: unknown): void;
}

function nextConnection(parked: Set<Socket>, waiting: Set<Waiter>, signal: AbortSignal | undefined): Promise<Duplex> {
  if (signal?.aborted) return Promise.reject(signal.reason);
  const [ready] = parked;
  if (ready !== undefined) {
    parked.delete(ready);
    ready.off("data", breach);
    ready.pause();
    return Promise.resolve(ready);
  }
  return new Promise((resolve, reject) => {
    const waiter: Waiter = {
      take: (socket) => {
        settle();
        socket.pause();
        resolve(socket);
      },
      abandon: (reason) => {
        settle();
        reject(reason);
      },
    };
    const onAbort = () => waiter.abandon(signal?.reason);
    const timer = setTimeout(() => waiter.abandon(unanswered()), answerMs);
    const settle = () => {
      waiting.delete(waiter);
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    waiting.add(waiter);
  });
}

/** The warden dials anew within milliseconds, unless the box is starved. */
const answerMs = 10_000;

function unanswered(): SessionError {
  return new SessionError("BOX_LOST", `The sandbox has not answered for ${answerMs / 1_000} seconds.`, {
    hint: "It may be starved of processor time or memory, or its runtime directory may be gone: `podbot ps` shows it.",
  });
}

function closed(): SessionError {
  return new SessionError("BOX_LOST", "The sandbox has ended.", { hint: "Start a new one with `podbot run`." });
}
