import { createServer, type IncomingMessage, ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { answerBad, answerHeaders, answerLong } from "./answer.ts";
import type { Inbound } from "./exchange.ts";
import { type HeaderList, pairs, tokensOf, valuesOf, without } from "./headers.ts";
import type { Line } from "./ledger.ts";
import { bounds, type Limits } from "./limits.ts";
import type { Requests } from "./requests.ts";
import type { Place } from "./target.ts";
import { closeWith } from "./tunnel.ts";
import { joinWebSocket } from "./websocket.ts";

export interface Http1Door {
  /** `line` is written where nothing is ever asked. */
  take(socket: Socket, place: Place, line: Line): void;
  close(): void;
}

/** What a proxy is asked for. */
export interface ConnectRequest {
  readonly authority: string;
  readonly headers: HeaderList;
  readonly socket: Socket;
  readonly head: Buffer;
}

/** A connection while it speaks HTTP. */
interface Seat {
  readonly place: Place;
  readonly line: Line;
  /** Requests that are not answered yet; more than one where they are sent without waiting. */
  pending: number;
  last: IncomingMessage | null;
  /** To be told when the connection is gone. Node tells the first request that waits for its answer, and no other. */
  readonly waiting: Set<() => void>;
  isBroken: boolean;
  timer: NodeJS.Timeout | undefined;
}

/**
 * Node's own parser, strict as it is by default: two lengths, a length beside chunks, or a space before a colon end
 * the connection.
 */
export function openHttp1Door(
  requests: Requests,
  limits: Limits,
  beginLine: (place: Place) => Line,
  onConnect: (request: ConnectRequest, line: Line) => void,
): Http1Door {
  const seats = new WeakMap<object, Seat>();
  const server = createServer({
    maxHeaderSize: limits.headBytes,
    // Nobody listens for connections here, so Node keeps no clock either: the seats have their own.
    requestTimeout: 0,
    headersTimeout: 0,
    keepAliveTimeout: 0,
    noDelay: true,
    highWaterMark: bounds.heldBytes,
    insecureHTTPParser: false,
    requireHostHeader: false,
  });
  // One more than is let through: Node keeps no more, and would leave out the others in silence.
  server.maxHeadersCount = limits.headFields + 1;

  /** Whoever does not finish what he asks for is not waited for. */
  const wait = (socket: Socket, seat: Seat) => {
    clearTimeout(seat.timer);
    if (socket.destroyed || seat.pending > 0) return;
    seat.timer = setTimeout(() => {
      seat.line.write({ verdict: "failed", reason: "its beginning took too long" });
      socket.destroy();
    }, limits.headMs).unref();
  };
  const seatOf = (socket: object) => seats.get(socket) as Seat;
  const begin = (incoming: IncomingMessage, response: ServerResponse): Seat => {
    const { socket } = incoming;
    const seat = seatOf(socket);
    clearTimeout(seat.timer);
    seat.pending += 1;
    seat.last = incoming;
    seat.line.drop();
    response
      .on("error", () => {})
      .once("close", () => {
        seat.pending -= 1;
        wait(socket, seat);
      });
    return seat;
  };
  const handle = (incoming: IncomingMessage, response: ServerResponse, waits: boolean) => {
    if (seatOf(incoming.socket).pending >= limits.pipelined) return breakPipeline(incoming);
    const seat = begin(incoming, response);
    void requests.handle(
      inboundOf(incoming, response, waits, { lingerMs: limits.lingerMs, waiting: seat.waiting }),
      seat.place,
    );
  };
  const breakPipeline = ({ socket }: IncomingMessage) => {
    // Node tells of what it has read already.
    if (socket.destroyed) return;
    beginLine(seatOf(socket).place).write({ kind: "http", verdict: "refused", reason: "limit" });
    socket.destroy();
  };
  /** What ends HTTP on a connection cannot come while something is still to be answered there. */
  const refusesAmidst = ({ socket, method }: IncomingMessage): boolean => {
    const { pending, place } = seatOf(socket);
    if (pending === 0) return false;
    beginLine(place).write({ kind: "http", verdict: "refused", reason: "spelling", ...(method && { method }) });
    socket.destroy();
    return true;
  };

  server.on("request", (incoming, response) => handle(incoming, response, false));
  server.on("checkContinue", (incoming, response) => handle(incoming, response, true));
  server.on("checkExpectation", (incoming, response) => handle(incoming, response, false));
  server.on("upgrade", (incoming, _, head) => {
    if (refusesAmidst(incoming)) return;
    const { socket } = incoming;
    if (isLong(incoming)) return refuseHead(socket, 431);
    if (!wantsWebSocket(incoming)) return ignoreUpgrade(incoming, head);
    const response = lastResponse(incoming, socket);
    const seat = begin(incoming, response);
    const early = collectEarly(socket, head, limits.headBytes);
    const asked = requests.upgrade(
      inboundOf(incoming, response, false, { lingerMs: limits.lingerMs, waiting: seat.waiting }),
      seat.place,
    );
    const joined = asked.then((opened) => {
      const said = early();
      if (opened === null) return;
      response.detachSocket(socket);
      // From here on, an end is an end.
      seat.waiting.clear();
      return joinWebSocket(opened, socket, said);
    });
    joined.catch(() => socket.destroy());
  });
  server.on("connect", (incoming, _, head) => {
    if (refusesAmidst(incoming)) return;
    const { socket } = incoming;
    if (isLong(incoming)) return refuseHead(socket, 431);
    const seat = seatOf(socket);
    // Only a proxy is asked to connect.
    if (!seat.place.proxy) return handle(incoming, lastResponse(incoming, socket), false);
    clearTimeout(seat.timer);
    seat.line.drop();
    const request = { authority: incoming.url as string, headers: pairs(incoming.rawHeaders), socket, head };
    onConnect(request, beginLine(seat.place));
  });
  server.on("clientError", (error: NodeJS.ErrnoException, stream) => {
    const socket = stream as Socket;
    const seat = seatOf(socket);
    // Node tells of everything that comes after it, too.
    if (seat.isBroken) return;
    seat.isBroken = true;
    const code = `${error.code}`;
    // What belongs to a request that is under way breaks that one, and so does a connection that has gone.
    const isHead = code.startsWith("HPE_") && (seat.last?.complete ?? true);
    if (!isHead) return void socket.destroy();
    refuseHead(socket, code === "HPE_HEADER_OVERFLOW" ? 431 : 400);
  });

  /** `requests` sees to all others. */
  const isLong = ({ rawHeaders }: IncomingMessage) => rawHeaders.length > 2 * limits.headFields;
  const refuseHead = (socket: Socket, status: 400 | 431) => {
    const seat = seatOf(socket);
    const line = seat.last === null ? seat.line : beginLine(seat.place);
    line.write({ kind: "http", verdict: "refused", reason: "spelling", status });
    clearTimeout(seat.timer);
    if (seat.pending > 0) return void socket.destroy();
    closeWith(socket, badRequest(status), limits.lingerMs);
  };

  /** Whoever offers another protocol may be answered as if he had not; so he is asked again, without it. */
  const ignoreUpgrade = (incoming: IncomingMessage, head: Buffer) => {
    const { socket, method, url, httpVersion } = incoming;
    const headers = pairs(incoming.rawHeaders);
    const kept = tokensOf(headers, "connection").filter((token) => token !== "upgrade" && token !== "http2-settings");
    const said = [
      ...without(headers, "connection", "upgrade", "http2-settings"),
      ...(kept.length === 0 ? [] : [["Connection", kept.join(", ")]]),
    ];
    const lines = said.map(([name, value]) => `${name}: ${value}\r\n`).join("");
    socket.unshift(
      Buffer.concat([Buffer.from(`${method} ${url} HTTP/${httpVersion}\r\n${lines}\r\n`, "latin1"), head]),
    );
    sit(socket, seatOf(socket));
  };
  const sit = (socket: Socket, { place, line }: Pick<Seat, "place" | "line">) => {
    const taken: Seat = { place, line, pending: 0, last: null, waiting: new Set(), isBroken: false, timer: undefined };
    clearTimeout(seats.get(socket)?.timer);
    seats.set(socket, taken);
    wait(socket, taken);
    server.emit("connection", socket);
    // It was stopped while somebody looked at how it begins.
    socket.resume();
  };
  return {
    take(socket, place, line) {
      socket
        .on("error", () => {})
        .once("close", () => {
          const { timer, waiting } = seatOf(socket);
          clearTimeout(timer);
          for (const tell of waiting) tell();
          line.write({ verdict: "failed", reason: "nothing was asked" });
        });
      sit(socket, { place, line });
    },
    close: () => void server.close(),
  };
}

function inboundOf(
  incoming: IncomingMessage,
  response: ServerResponse,
  waits: boolean,
  { lingerMs, waiting }: Pick<Limits, "lingerMs"> & Pick<Seat, "waiting">,
): Inbound {
  const { socket } = incoming;
  const headers = pairs(incoming.rawHeaders);
  const framing = framingOf(headers);
  return {
    version: 1,
    method: incoming.method as string,
    written: incoming.url as string,
    authority: null,
    headers,
    body: incoming,
    framing,
    proceed() {
      if (waits) response.writeContinue();
    },
    respond(status, answer) {
      if (response.headersSent) throw new Error("the answer has begun already");
      response.sendDate = false;
      response.writeHead(status, STATUS_CODES[status] ?? "", answer.flat());
      // With what follows at once, if anything does; but not later than that.
      setImmediate(() => {
        if (!response.destroyed && !response.writableEnded) response.flushHeaders();
      });
      return response;
    },
    finish(trailers) {
      if (trailers.length > 0) response.addTrailers(trailers as [string, string][]);
      response.end();
    },
    forsake() {
      if (framing === "none" || incoming.complete) return;
      incoming.resume();
      const timer = setTimeout(() => (incoming.complete ? undefined : socket.destroy()), lingerMs);
      socket.once("close", () => clearTimeout(timer));
      incoming.once("end", () => clearTimeout(timer));
    },
    hangUp() {
      response.shouldKeepAlive = false;
    },
    abort: () => socket.destroy(),
    onGone(listener) {
      if (response.destroyed || socket.destroyed) return listener();
      const tell = () => {
        waiting.delete(tell);
        if (!response.writableFinished) listener();
      };
      waiting.add(tell);
      response.once("close", tell);
    },
  };
}

function framingOf(headers: HeaderList): Inbound["framing"] {
  if (valuesOf(headers, "transfer-encoding").length > 0) return "chunked";
  return valuesOf(headers, "content-length").some((value) => value !== "0") ? "length" : "none";
}

function wantsWebSocket(incoming: IncomingMessage): boolean {
  const headers = pairs(incoming.rawHeaders);
  const wanted = tokensOf(headers, "upgrade");
  return wanted.join() === "websocket" && incoming.method === "GET" && framingOf(headers) === "none";
}

/** While nobody reads a connection, nobody would see it end either. What it says too early is kept, up to a point. */
function collectEarly(socket: Socket, head: Buffer, most: number): () => Buffer {
  const parts = [head];
  let length = head.length;
  const onData = (bytes: Buffer) => {
    parts.push(bytes);
    length += bytes.length;
    if (length > most) socket.pause();
  };
  const onEnd = () => void socket.destroy();
  socket.on("data", onData).once("end", onEnd);
  return () => {
    socket.off("data", onData).off("end", onEnd).pause();
    return Buffer.concat(parts);
  };
}

/** For a connection that Node's parser has let go of: one answer, and the end. */
function lastResponse(incoming: IncomingMessage, socket: Socket): ServerResponse {
  const response = new ServerResponse(incoming);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  response.once("finish", () => socket.end());
  return response;
}

function badRequest(status: 400 | 431): string {
  const answer = status === 431 ? answerLong() : answerBad("The request is not proper HTTP and was refused.");
  const headers = pairs(answerHeaders(answer)).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${headers.join("")}connection: close\r\n\r\n${answer.body}`;
}
