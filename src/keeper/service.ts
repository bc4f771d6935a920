import { chmodSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { SessionError } from "../errors.ts";
import { isOwnPeer } from "../machine/peer.ts";
import { openSocketPath } from "../machine/socket-path.ts";
import { encodeError, encodeResult, type Message, parseMessage, rpcCodes } from "../wire/json-rpc.ts";
import { LineReader } from "../wire/ndjson.ts";

type Params = Readonly<Record<string, unknown>>;

/** What a keeper does for whoever asks. */
export interface Duties {
  /** Who the keeper is and what it keeps. */
  describe(): unknown;
  /** A stream to the warden; the connection that asked becomes it. */
  connect(params: Params): Promise<Duplex>;
  /** Goes by the configuration's rules of now. */
  reload(): Promise<unknown>;
  /** Begins the end of the session; every connection ends with it. */
  stop(params: Params): unknown;
}

export interface Service {
  close(): void;
}

/** Listens for commands of the same user: requests in lines of JSON-RPC, answered in the order in which they come. */
export async function openService(path: string, uid: number, duties: Duties): Promise<Service> {
  const sockets = new Set<Socket>();
  // Nothing is read before it is known who speaks.
  const server = createServer({ pauseOnConnect: true }, (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    socket.on("error", () => {});
    isOwnPeer(socket, uid)
      .then((owner) => (owner ? converse(socket, duties) : socket.destroy()))
      .catch(() => socket.destroy());
  });
  const place = openSocketPath(path);
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(place.address, resolve);
      server.on("error", () => {});
    });
    chmodSync(path, 0o600);
  } catch (cause) {
    place[Symbol.dispose]();
    throw new SessionError("RUNTIME_DIRECTORY", `The session's socket ${path} cannot be made.`, {
      hint: "Its directory must be writable, with space left: set XDG_RUNTIME_DIR to one that is.",
      cause,
    });
  }
  return {
    close() {
      server.close();
      place[Symbol.dispose]();
      for (const socket of sockets) socket.destroySoon();
    },
  };
}

function converse(socket: Socket, duties: Duties): void {
  const lines = new LineReader(64 * 1024);
  let turn = Promise.resolve();
  const onData = (bytes: Buffer) => {
    lines.feed(bytes);
    socket.pause();
    turn = turn
      .then(() => answerAll(socket, lines, duties, () => socket.off("data", onData)))
      .catch((error) => void socket.end(encodeError(null, error, rpcCodes.parse)));
  };
  socket.on("data", onData);
  socket.resume();
}

/** Answers what has come; afterwards the connection is listened to again, unless it has become a stream. */
async function answerAll(socket: Socket, lines: LineReader, duties: Duties, leave: () => void): Promise<void> {
  for (let line = lines.next(); line !== null; line = lines.next()) {
    const message = parseMessage(line);
    if (message.kind !== "request") continue;
    if (message.method === "connect") return becomeStream(socket, message, lines, duties, leave);
    socket.write(await answer(message, duties));
  }
  socket.resume();
}

async function answer(request: Extract<Message, { kind: "request" }>, duties: Duties): Promise<string> {
  try {
    if (request.method === "describe") return encodeResult(request.id, duties.describe());
    if (request.method === "reload") return encodeResult(request.id, await duties.reload());
    if (request.method === "stop") return encodeResult(request.id, duties.stop(paramsOf(request)));
    const unknown = new SessionError("PROTOCOL", `This keeper knows no method ${JSON.stringify(request.method)}.`);
    return encodeError(request.id, unknown, rpcCodes.method);
  } catch (error) {
    return encodeError(request.id, error);
  }
}

async function becomeStream(
  socket: Socket,
  request: Extract<Message, { kind: "request" }>,
  lines: LineReader,
  duties: Duties,
  leave: () => void,
): Promise<void> {
  try {
    const stream = await duties.connect(paramsOf(request));
    if (socket.destroyed) return void stream.destroy();
    leave();
    socket.write(encodeResult(request.id, null));
    const early = lines.rest();
    if (early.length > 0) stream.write(early);
    join(socket, stream);
  } catch (error) {
    socket.end(encodeError(request.id, error));
  }
}

/** Whatever ends one side ends the other: a client that vanishes must be missed inside. */
function join(socket: Socket, stream: Duplex): void {
  stream.on("error", () => {});
  socket.once("close", () => stream.destroy());
  stream.once("close", () => part(socket));
  socket.pipe(stream);
  stream.pipe(socket);
}

/** How long a client may take to read the last words. */
const partingMs = 2_000;

/** A client that is still sending must be able to read the end: were the connection cut, it would not. */
function part(socket: Socket): void {
  socket.unpipe();
  socket.resume();
  socket.end();
  const timer = setTimeout(() => socket.destroy(), partingMs);
  socket.once("close", () => clearTimeout(timer));
}

function paramsOf({ params }: Extract<Message, { kind: "request" }>): Params {
  return params === undefined || Array.isArray(params) ? {} : (params as Params);
}
