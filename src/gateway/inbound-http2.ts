import { constants, performServerHandshake, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { Inbound } from "./exchange.ts";
import { fieldsOf, type HeaderList, merge, ofTheMessage, valuesOf } from "./headers.ts";
import type { Line } from "./ledger.ts";
import { bounds, type Limits } from "./limits.ts";
import { watchMalformed } from "./malformed.ts";
import type { Requests } from "./requests.ts";
import type { Place } from "./target.ts";

export interface Http2Door {
  /** `line` is written where nothing is ever asked. */
  take(socket: Socket, place: Place, line: Line): void;
  close(): void;
}

export function openHttp2Door(requests: Requests, limits: Limits, beginLine: (place: Place) => Line): Http2Door {
  const sessions = new Set<ServerHttp2Session>();
  let streams = 0;
  const options = {
    settings: {
      maxConcurrentStreams: limits.streams,
      // Without a table, a byte cannot stand for a header of 4 KiB. A client that never acknowledges this keeps its table,
      // and nghttp2 enforces neither: so there are few fields, and `requests` adds them up.
      headerTableSize: 0,
      maxHeaderListSize: limits.headBytes,
      enableConnectProtocol: false,
      initialWindowSize: bounds.heldBytes,
    },
    maxHeaderListPairs: limits.headFields,
    maxSessionMemory: bounds.http2SessionMegabytes,
  };
  return {
    take(socket, place, line) {
      if (sessions.size >= limits.http2Connections) {
        line.write({ verdict: "refused", reason: "limit" });
        socket.destroy();
        return;
      }
      const session = performServerHandshake(socket, options);
      sessions.add(session);
      watchMalformed(session, socket, () => {
        line.drop();
        beginLine(place).write({ kind: "http", verdict: "refused", reason: "spelling" });
      });
      let open = 0;
      const timer = setTimeout(() => {
        if (open === 0) session.close();
      }, limits.headMs).unref();
      session
        .on("error", () => {})
        .once("close", () => {
          clearTimeout(timer);
          sessions.delete(session);
          line.write({ verdict: "failed", reason: "nothing was asked" });
        });
      session.on("stream", (stream, headers, flags, raw?: readonly string[]) => {
        open += 1;
        streams += 1;
        line.drop();
        stream
          .on("error", () => {})
          .once("close", () => {
            open -= 1;
            streams -= 1;
            if (open === 0) timer.refresh();
          });
        if (streams > limits.allStreams) {
          beginLine(place).write({ kind: "http", verdict: "refused", reason: "limit" });
          stream.close(constants.NGHTTP2_REFUSED_STREAM);
          return;
        }
        const hasBody = (flags & constants.NGHTTP2_FLAG_END_STREAM) === 0;
        void requests.handle(inboundOf(stream, headers, fieldsOf(raw ?? []), hasBody, limits), place);
      });
    },
    close() {
      for (const session of sessions) session.destroy();
    },
  };
}

function inboundOf(
  stream: ServerHttp2Stream,
  pseudo: Readonly<Record<string, unknown>>,
  headers: HeaderList,
  hasBody: boolean,
  { lingerMs }: Limits,
): Inbound {
  let following: HeaderList = [];
  let isAborted = false;
  let isFinished = false;
  const { ":method": method, ":path": path = "", ":authority": authority } = pseudo;
  return {
    version: 2,
    method: `${method}`,
    written: `${path}`,
    authority: authority === undefined ? null : `${authority}`,
    headers,
    body: stream,
    framing: !hasBody ? "none" : valuesOf(headers, "content-length").length > 0 ? "length" : "chunked",
    // Nobody has been seen to wait for it; whoever does is told.
    proceed() {
      if (hasBody && valuesOf(headers, "expect").length > 0) stream.additionalHeaders({ ":status": 100 });
    },
    respond(status, answer) {
      stream.respond({ ":status": status, ...merge(answer) }, { waitForTrailers: true });
      stream.once("wantTrailers", () => {
        // Without them it has no end, as it should be with what was broken off.
        if (isAborted) return;
        try {
          stream.sendTrailers(merge(ofTheMessage(following)));
        } catch {
          stream.close(constants.NGHTTP2_INTERNAL_ERROR);
        }
      });
      return stream;
    },
    finish(trailers) {
      following = trailers;
      isFinished = true;
      stream.end();
    },
    forsake() {
      if (!hasBody || stream.readableEnded) return;
      stream.resume();
      const timer = setTimeout(() => stream.close(constants.NGHTTP2_NO_ERROR), lingerMs);
      stream.once("close", () => clearTimeout(timer));
    },
    hangUp() {
      if (stream.session?.closed === false) stream.session.close();
    },
    abort() {
      isAborted = true;
      stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    },
    onGone(listener) {
      if (stream.destroyed) listener();
      // One that was reset counts as finished with Node, on both sides of it.
      else stream.once("close", () => (isFinished && stream.rstCode === 0 ? undefined : listener()));
    },
  };
}
