import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import { dialTls, type Outside, type Way } from "./dial.ts";
import { isRepeatable, type Outbound, type Reply, type Sending } from "./exchange.ts";
import { fieldsOf, type HeaderList, merge } from "./headers.ts";
import { heldBytes, pump } from "./pump.ts";

export interface Http2 {
  /** Null where whoever is there does not speak HTTP/2. */
  send(outbound: Outbound, way: Way): Promise<Sending | null>;
  close(): void;
}

interface Held {
  readonly session: ClientHttp2Session;
  streams: number;
  wasUsed: boolean;
}

/** One session a place, shared by all streams that lead there. */
export function openHttp2(outside: Outside, idleMs: number): Http2 {
  const sessions = new Map<string, Promise<Held | null>>();

  const open = async (way: Way, forget: () => void): Promise<Held | null> => {
    const socket = await dialTls(way, ["h2", "http/1.1"], outside);
    if (socket.alpnProtocol !== "h2") {
      socket.destroy();
      return null;
    }
    const session = connect(`https://${way.host}`, {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: heldBytes },
    });
    session
      .on("error", () => {})
      .once("close", forget)
      .once("goaway", forget);
    const held = { session, streams: 0, wasUsed: false };
    session.setTimeout(idleMs, () => {
      if (held.streams === 0) session.close();
    });
    return held;
  };

  const sessionFor = async (way: Way): Promise<Held | null> => {
    const key = `${way.host} ${way.port} ${way.local}`;
    for (;;) {
      const known = sessions.get(key);
      const held = await known;
      if (held !== undefined && (held === null || !(held.session.closed || held.session.destroyed))) return held;
      if (sessions.get(key) !== known) continue;
      const made = open(way, () => {
        if (sessions.get(key) === made) sessions.delete(key);
      });
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
      const reply = replyOn(stream).catch(async (error) => {
        // A session that was kept may have ended at the other end in the moment of its use.
        const again = isAborted || !wasUsed || !isRepeatable(outbound) ? null : await sessionFor(way);
        if (again === null) throw error;
        stream = begin(again, outbound);
        return replyOn(stream);
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
    close() {
      for (const made of sessions.values()) void made.then((held) => held?.session.destroy()).catch(() => {});
      sessions.clear();
    },
  };
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

function replyOn(stream: ClientHttp2Stream): Promise<Reply> {
  let trailers: HeaderList = [];
  stream.once("trailers", (_headers, _flags, raw?: readonly string[]) => {
    trailers = fieldsOf(raw ?? []);
  });
  return new Promise((resolve, reject) => {
    stream.once("response", (headers, _flags, raw?: readonly string[]) =>
      resolve({
        status: headers[":status"] as number,
        headers: fieldsOf(raw ?? []),
        body: stream,
        trailers: () => trailers,
      }),
    );
    stream.on("error", reject);
    stream.once("close", () => reject(new Error("the stream was closed without an answer")));
  });
}
