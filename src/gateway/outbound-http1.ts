import { Agent, type ClientRequest, type IncomingMessage, request as requestHttp } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { DialFailure, dial, dialTls, type Outside, type Way } from "./dial.ts";
import { isRepeatable, type Outbound, type Reply, type Sending } from "./exchange.ts";
import { pairs, valuesOf } from "./headers.ts";
import { bounds, type Limits } from "./limits.ts";
import { pump, type Tally } from "./pump.ts";

interface Route extends Way {
  readonly secure: boolean;
}

/** Node's own agent, with our way to the outside: it keeps connections, we choose where they lead. */
class Dialler extends Agent {
  readonly #outside: Outside;
  #keeps: boolean;

  constructor(outside: Outside, idleMs: number, keeps = true) {
    // The time is that of a connection which waits: Node's agent ends no other by it.
    super({ keepAlive: true, maxFreeSockets: bounds.idleOutside, scheduling: "lifo", timeout: idleMs });
    this.#outside = outside;
    this.#keeps = keeps;
  }

  /**
   * Node asks once request and answer are over, and ends a connection that is not kept. Its bound is that of one place,
   * and a box may be allowed any number of them. Node's types leave out the answer.
   */
  override keepSocketAlive(socket: Duplex): unknown {
    const idle = Object.values(this.freeSockets).reduce((sum, sockets = []) => sum + sockets.length, 0);
    return this.#keeps && idle < bounds.idleOutside && super.keepSocketAlive(socket);
  }

  /** Those that wait end now, the others after their answer. */
  retire(): void {
    this.#keeps = false;
    for (const sockets of Object.values(this.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
  }

  override getName(options?: object): string {
    const { host, port, secure, local } = (options as { readonly route: Route }).route;
    return `${secure ? "https" : "http"} ${host} ${port} ${local}`;
  }

  override createConnection(options: object, callback?: (error: Error | null, stream: Duplex) => void): undefined {
    const { route } = options as { readonly route: Route };
    const made: Promise<Socket> = route.secure
      ? dialTls(route, ["http/1.1"], this.#outside)
      : dial(route, this.#outside);
    made.then(
      (socket) => callback?.(null, socket),
      (error) => callback?.(error, undefined as unknown as Duplex),
    );
    return undefined;
  }
}

export interface Http1 {
  send(outbound: Outbound, route: Route): Sending;
  /** Asks for a WebSocket; resolves with what was answered, and with the connection where it was granted. */
  upgrade(outbound: Outbound, route: Route): Upgrading;
  /** No request that is sent from now on goes by a connection that there is. */
  retire(): void;
  close(): void;
}

export interface Upgrading {
  readonly answered: Promise<Upgraded>;
  abort(): void;
}

export type Upgraded =
  | { readonly kind: "upgraded"; readonly reply: Reply; readonly socket: Socket; readonly head: Buffer }
  | { readonly kind: "declined"; readonly reply: Reply };

export function openHttp1(outside: Outside, { idleMs, headBytes, headFields }: Limits): Http1 {
  let agent = new Dialler(outside, idleMs);
  // `Connection: close` alone does not do: Node keeps a connection unless the server says `close`, too.
  const once = new Dialler(outside, idleMs, false);
  const retired = new Set<Dialler>();
  const begin = (outbound: Outbound, route: Route, extra: readonly string[] = []): ClientRequest => {
    const request = requestHttp({
      agent: endsConnection(outbound) ? once : agent,
      method: outbound.method,
      path: outbound.path,
      headers: [...headersOf(outbound), ...extra],
      setHost: false,
      maxHeaderSize: headBytes,
      // Not an option of Node's: the agent hands it to its own `createConnection`.
      ...({ route } as object),
    });
    // One more than is let through: Node keeps no more, and would leave out the others in silence.
    request.maxHeadersCount = headFields + 1;
    return request;
  };
  return {
    send(outbound, route) {
      let request = begin(outbound, route);
      let isAborted = false;
      const sent = { bytes: 0 };
      const reply = replyTo(request, headFields).catch((error) => {
        // A connection that was kept may have been closed at the other end in the moment of its use.
        if (isAborted || !request.reusedSocket || !isRepeatable(outbound) || error instanceof DialFailure) throw error;
        request = begin(outbound, route);
        request.end();
        return replyTo(request, headFields);
      });
      reply.catch(() => {});
      return {
        reply,
        sent,
        finished: outbound.framing === "none" ? Promise.resolve(void request.end()) : carry(outbound, request, sent),
        abort() {
          isAborted = true;
          request.destroy();
        },
      };
    },
    upgrade(outbound, route) {
      const request = begin(outbound, route, ["Connection", "Upgrade", "Upgrade", "websocket"]);
      const answered = new Promise<Upgraded>((resolve, reject) => {
        request.once("upgrade", (incoming, socket, head) => {
          socket.on("error", () => {});
          resolve({ kind: "upgraded", reply: toReply(incoming), socket: socket as Socket, head });
        });
        request.once("response", (incoming) => resolve({ kind: "declined", reply: toReply(incoming) }));
        request.on("error", reject);
        request.once("close", () => reject(new Error("the connection was closed without an answer")));
        request.end();
      });
      answered.catch(() => {});
      return { answered, abort: () => request.destroy() };
    },
    retire() {
      agent.retire();
      retired.add(agent);
      for (const each of retired) if (Object.keys(each.sockets).length === 0) retired.delete(each);
      agent = new Dialler(outside, idleMs);
    },
    close() {
      for (const each of [agent, once, ...retired]) each.destroy();
    },
  };
}

/** What breaks here breaks the request, which says so itself. */
function carry(outbound: Outbound, request: ClientRequest, sent: Tally): Promise<void> {
  // With what follows at once, if anything does; but not later than that: the other side may have something to say.
  setImmediate(() => {
    if (!request.destroyed && !request.writableEnded) request.flushHeaders();
  });
  return pump(outbound.body, request, sent).then(
    () => void request.end(),
    () => void request.destroy(),
  );
}

/** A server that does not read a body would take it for the next request, which no rule has judged. */
function endsConnection({ isGuarded, framing }: Outbound): boolean {
  return isGuarded && framing !== "none";
}

function headersOf(outbound: Outbound): readonly string[] {
  const { headers, authority, framing, method } = outbound;
  const isNamed = valuesOf(headers, "host").length > 0;
  const isMeasured = valuesOf(headers, "content-length").length > 0;
  // Where a body would be expected, Node announces one unless it is told that there is none.
  const isEmpty = framing === "none" && !isMeasured && !["GET", "HEAD", "DELETE", "OPTIONS", "TRACE"].includes(method);
  return [
    ...(isNamed ? [] : ["Host", authority]),
    ...headers.flat(),
    ...(framing === "chunked" ? ["Transfer-Encoding", "chunked"] : []),
    ...(isEmpty ? ["Content-Length", "0"] : []),
    ...(endsConnection(outbound) ? ["Connection", "close"] : []),
  ];
}

function replyTo(request: ClientRequest, headFields: number): Promise<Reply> {
  return new Promise((resolve, reject) => {
    // Most are answered: then no error need be made of the end.
    const onClose = () => reject(new Error("the connection was closed without an answer"));
    request.once("response", (incoming) => {
      request.off("close", onClose);
      if (incoming.rawHeaders.length <= 2 * headFields) return resolve(toReply(incoming));
      reject(new Error("the head of the answer is too long"));
      request.destroy();
    });
    request.on("error", reject);
    request.once("close", onClose);
  });
}

function toReply(incoming: IncomingMessage): Reply {
  return {
    status: incoming.statusCode as number,
    headers: pairs(incoming.rawHeaders),
    body: incoming,
    trailers: () => pairs(incoming.rawTrailers),
  };
}
