import { connect, type Socket } from "node:net";
import { connect as connectTls, type SecureContext } from "node:tls";
import { ProxyFailure } from "./failure.ts";
import type { Upstream } from "./upstream.ts";

export interface TunnelOptions {
  /** For the proxy to be reached, and again for its answer. */
  readonly withinMs: number;
  /** Whom to believe, where it is spoken to in TLS. Default: whom Node believes. */
  readonly trust?: () => SecureContext;
  readonly allowHalfOpen?: boolean;
  /** How many bytes may wait here. */
  readonly heldBytes?: number;
  readonly signal?: AbortSignal | undefined;
}

/** No proxy has more to say before it leads on. */
const largestHead = 16_384;

/** A connection to a place beyond the proxy. What is said there is between the two ends. */
export async function openTunnel(
  upstream: Upstream,
  { host, port }: { readonly host: string; readonly port: number },
  options: TunnelOptions,
): Promise<Socket> {
  const socket = await reach(upstream, options);
  const place = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  const login = upstream.authorization === null ? "" : `Proxy-Authorization: ${upstream.authorization}\r\n`;
  socket.write(`CONNECT ${place} HTTP/1.1\r\nHost: ${place}\r\n${login}\r\n`);
  const head = await readHead(socket, upstream, options.withinMs);
  const [, status] = /^HTTP\/1\.[01] (\d{3})(?: |\r|$)/.exec(head) ?? [];
  if (status === "200") return socket;
  socket.destroy();
  if (status === undefined) throw new ProxyFailure(upstream, "does not answer as a proxy does");
  if (status !== "407") throw new ProxyFailure(upstream, `answered ${status} when it was asked for ${place}`);
  const what =
    upstream.authorization === null ? "wants a name and a password" : "does not accept the name and password";
  throw new ProxyFailure(
    upstream,
    `${what} (407)`,
    `both are part of its address, http://NAME:PASSWORD@${upstream.host}:${upstream.port}`,
  );
}

function reach(upstream: Upstream, options: TunnelOptions): Promise<Socket> {
  const { withinMs, trust, allowHalfOpen = false, heldBytes, signal } = options;
  const { host, port, secure } = upstream;
  // The last two are known to Node, though not to all of its types.
  const common = { allowHalfOpen, ...(heldBytes === undefined ? {} : { highWaterMark: heldBytes }) };
  const plain = connect({ host, port, noDelay: true, keepAlive: true, ...(signal && { signal }), ...common });
  const socket = secure
    ? connectTls({
        socket: plain,
        host,
        ...(isName(host) ? { servername: host } : {}),
        ...(trust === undefined ? {} : { secureContext: trust() }),
        ...common,
        // Whatever this process was told by its environment.
        rejectUnauthorized: true,
      })
    : plain;
  return new Promise((resolve, reject) => {
    const event = secure ? "secureConnect" : "connect";
    const settle = (why?: string) => {
      clearTimeout(timer);
      socket.off(event, onDone).off("error", onError).off("close", onClose);
      for (const each of [plain, socket]) each.on("error", () => {});
      if (why === undefined) return resolve(socket);
      socket.destroy();
      plain.destroy();
      reject(signal?.aborted ? signal.reason : new ProxyFailure(upstream, `cannot be reached: ${why}`));
    };
    const onDone = () => settle();
    const onError = (error: Error) =>
      settle(error.message || (error as NodeJS.ErrnoException).code || "no reason given");
    const onClose = () => settle("the connection was closed");
    const timer = setTimeout(() => settle("nobody answered in time"), withinMs);
    socket.on(event, onDone).on("error", onError).on("close", onClose);
    if (secure) plain.on("error", onError);
  });
}

function isName(host: string): boolean {
  return !host.includes(":") && !/^[\d.]+$/.test(host);
}

/** Up to the empty line, and no further: what follows is the other end's, and is left for whoever reads next. */
function readHead(socket: Socket, upstream: Upstream, withinMs: number): Promise<string> {
  let seen = Buffer.alloc(0);
  return new Promise((resolve, reject) => {
    const settle = (what?: string) => {
      clearTimeout(timer);
      socket.off("readable", onReadable).off("end", onEnd).off("close", onEnd);
      if (what === undefined) return;
      socket.destroy();
      reject(new ProxyFailure(upstream, what));
    };
    // Not by events of data: a stream that has flowed and was stopped does not begin again by itself.
    const onReadable = () => {
      for (let bytes = socket.read(); bytes !== null; bytes = socket.read()) {
        seen = Buffer.concat([seen, bytes]);
        const end = seen.indexOf("\r\n\r\n");
        if (end > largestHead || (end < 0 && seen.length > largestHead)) return settle("does not come to an end");
        if (end < 0) continue;
        settle();
        if (end + 4 < seen.length) socket.unshift(seen.subarray(end + 4));
        return resolve(seen.toString("latin1", 0, end));
      }
    };
    const onEnd = () => settle("hung up without an answer");
    const timer = setTimeout(() => settle("did not answer in time"), withinMs);
    socket.on("readable", onReadable).on("end", onEnd).on("close", onEnd);
  });
}
