import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import { dialTls, type Outside, type Way } from "./dial.ts";
import { isRepeatable, type Outbound, type Reply, type Sending } from "./exchange.ts";
import { fieldsOf, type HeaderList, merge, rawBytesOf } from "./headers.ts";
import { bounds, type Limits } from "./limits.ts";
import { pump } from "./pump.ts";

export interface Http2 {
  /** Null where whoever is there does not speak HTTP/2. */
  send(outbound: Outbound, way: Way): Promise<Sending | null>;
  /** No request that is sent from now on goes by a connection that there is. */
  retire(): void;
  close(): void;
}

interface Held {
  readonly session: ClientHttp2Session;
  streams: number;
  wasUsed: boolean;
}

/** One session a place, shared by all streams that lead there. */
export function openHttp2(outside: Outside, limits: Limits): Http2 {
  const sessions = new Map<string, Promise<Held | null>>();
  /** All that are open, also those that no place knows any more. */
  const open = new Set<Held>();

  const connectTo = async (way: Way, forget: () => void): Promise<Held | null> => {
    const socket = await dialTls(way, ["h2", "http/1.1"], outside);
    if (socket.alpnProtocol !== "h2") {
      socket.destroy();
      return null;
    }
    const session = connect(`https://${way.host}`, {
      createConnection: () => socket,
      settings: {
        enablePush: false,
        initialWindowSize: bounds.heldBytes,
        // As towards the box: what answers may be the agent's own.
        headerTableSize: 0,
        maxHeaderListSize: limits.headBytes,
      },
      maxHeaderListPairs: limits.headFields,
      maxSessionMemory: bounds.http2SessionMegabytes,
    });
    const held = { session, streams: 0, wasUsed: false };
    open.add(held);
    session
      .on("error", () => {})
      .once("connect", () => session.setLocalWindowSize(bounds.http2WindowBytes))
      .once("close", () => {
        open.delete(held);
        forget();
      })
      .once("goaway", forget);
    session.setTimeout(limits.idleMs, () => {
      if (held.streams === 0) session.close();
    });
    makeRoom(open);
    return held;
  };

  const sessionFor = async (way: Way): Promise<Held | null> => {
    const key = `${way.host} ${way.port} ${way.local}`;
    for (;;) {
      const known = sessions.get(key);
      const held = await known;
      if (held !== undefined && (held === null || !(held.session.closed || held.session.destroyed))) return held;
      if (sessions.get(key) !== known) continue;
      const made = connectTo(way, () => {
        if (sessions.get(key) === made) sessions.delete(key);
      });
      // The oldest is forgotten, not closed: it ends when it is idle.
      if (sessions.size >= bounds.placesOutside) sessions.delete(sessions.keys().next().value as string);
      sessions.set(key, made);
      made.catch(() => sessions.delete(key));
    }
  };

  return {
    async send(outbound, way) {
      const held = await sessionFor(way);
      if (held === null) return null;
      const { wasUsed } = held;
      const sent = { bytes: 0 };
      let isAborted = false;
      let stream = begin(held, outbound);
      const reply = replyOn(stream, limits).catch(async (error) => {
        // A session that was kept may have ended at the other end in the moment of its use.
        const again = isAborted || !wasUsed || !isRepeatable(outbound) ? null : await sessionFor(way);
        if (again === null) throw error;
        stream = begin(again, outbound);
        return replyOn(stream, limits);
      });
      reply.catch(() => {});
      const finished = outbound.framing === "none" ? Promise.resolve() : pump(outbound.body, stream, sent);
      return {
        reply,
        sent,
        finished: finished.then(
          () => void stream.end(),
          () => stream.close(constants.NGHTTP2_CANCEL),
        ),
        abort() {
          isAborted = true;
          stream.close(constants.NGHTTP2_CANCEL);
        },
      };
    },
    retire() {
      const all = [...sessions.values()];
      sessions.clear();
      // Streams that are open go on to their end.
      for (const made of all) void made.then((held) => held?.session.close()).catch(() => {});
    },
    close() {
      for (const made of sessions.values()) void made.then((held) => held?.session.destroy()).catch(() => {});
      for (const { session } of open) session.destroy();
      sessions.clear();
    },
  };
}

/** Ends those that have waited longest, where more wait than may. */
function makeRoom(open: ReadonlySet<Held>): void {
  const idle = [...open].filter(({ streams, wasUsed }) => streams === 0 && wasUsed);
  for (const { session } of idle.slice(0, Math.max(0, idle.length - bounds.idleOutside))) session.close();
}

function begin(held: Held, { method, path, authority, headers, framing }: Outbound): ClientHttp2Stream {
  const stream = held.session.request(
    {
      ":method": method,
      ":path": path,
      ":authority": authority,
      ":scheme": "https",
      ...merge(headers.filter(([name]) => name.toLowerCase() !== "host")),
    },
    { endStream: framing === "none" },
  );
  held.wasUsed = true;
  held.streams += 1;
  stream
    .on("error", () => {})
    .once("close", () => {
      held.streams -= 1;
    });
  return stream;
}

/**
 * nghttp2 bounds a head only once the other side has acknowledged it, and never the sum of several. Each is counted as
 * it comes, and one that is too long is not looked at any further. What stands in front of the answer and behind it
 * counts as one with it.
 */
function replyOn(stream: ClientHttp2Stream, { headBytes }: Limits): Promise<Reply> {
  let trailers: HeaderList = [];
  let bytes = 0;
  let informational = 0;
  return new Promise((resolve, reject) => {
    const isTooLong = (raw: readonly string[] = []): boolean => {
      bytes += rawBytesOf(raw);
      if (bytes <= headBytes) return false;
      reject(new Error("the head of the answer is too long"));
      stream.close(constants.NGHTTP2_CANCEL);
      return true;
    };
    stream.on("headers", (_pseudo, _flags, raw?: readonly string[]) => {
      informational += 1;
      if (isTooLong(raw) || informational <= bounds.informational) return;
      reject(new Error("there are too many answers before the answer"));
      stream.close(constants.NGHTTP2_CANCEL);
    });
    stream.once("response", (pseudo, _flags, raw?: readonly string[]) => {
      if (isTooLong(raw)) return;
      resolve({
        status: pseudo[":status"] as number,
        headers: fieldsOf(raw ?? []),
        body: stream,
        trailers: () => trailers,
      });
    });
    stream.once("trailers", (_pseudo, _flags, raw?: readonly string[]) => {
      if (!isTooLong(raw)) trailers = fieldsOf(raw ?? []);
    });
    stream.on("error", reject);
    stream.once("close", () => reject(new Error("the stream was closed without an answer")));
  });
}
