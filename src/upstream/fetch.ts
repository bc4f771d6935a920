import { type IncomingMessage, request as requestHttp } from "node:http";
import type { Socket } from "node:net";
import { Readable } from "node:stream";
import { connect as connectTls } from "node:tls";
import { openTunnel } from "./tunnel.ts";
import { goesDirect, type Upstream } from "./upstream.ts";

const dialMs = 10_000;

/** `fetch` by way of a proxy, which Node's own does not know. For requests whose body is text; follows no redirect. */
export async function fetchThrough(upstream: Upstream, address: string, options: RequestInit): Promise<Response> {
  const url = new URL(address);
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const secure = url.protocol === "https:";
  const port = url.port === "" ? (secure ? 443 : 80) : Number(url.port);
  if (goesDirect(upstream, host, port)) return fetch(address, { ...options, redirect: "manual" });
  const signal = options.signal ?? undefined;
  const tunnel = await openTunnel(upstream, { host, port }, { withinMs: dialMs, signal });
  // Whatever this process was told by its environment.
  const socket = secure ? connectTls({ socket: tunnel, servername: host, rejectUnauthorized: true }) : tunnel;
  try {
    return toResponse(await ask(socket, url, options));
  } catch (error) {
    tunnel.destroy();
    throw signal?.aborted ? signal.reason : error;
  }
}

function ask(socket: Socket, url: URL, { method = "GET", headers, body }: RequestInit): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = requestHttp({
      createConnection: () => socket,
      method,
      path: `${url.pathname}${url.search}`,
      headers: { host: url.host, ...Object.fromEntries(new Headers(headers)) },
    });
    request.on("response", resolve).on("error", reject);
    request.end(body ?? undefined);
  });
}

function toResponse(incoming: IncomingMessage): Response {
  const status = incoming.statusCode as number;
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers)) {
    for (const each of [value ?? []].flat()) headers.append(name, each);
  }
  const isEmpty = status === 204 || status === 205 || status === 304;
  return new Response(isEmpty ? null : (Readable.toWeb(incoming) as ReadableStream), { status, headers });
}
