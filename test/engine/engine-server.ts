import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { type AddressInfo, createServer as createNetServer, type Server as NetServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { type ConnectOptions, connectEngine, type EngineClient } from "../../src/engine/client.ts";
import type { EngineError } from "../../src/errors.ts";

export const directory = mkdtempSync(join(tmpdir(), "podbot-engine-"));
const cleanups: (() => void)[] = [];
afterAll(() => {
  for (const clean of cleanups.reverse()) clean();
  rmSync(directory, { recursive: true, force: true });
});

let count = 0;
export const freshPath = (name = "s") => join(directory, `${name}${count++}`);

export interface Call {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage["headers"];
}

export type Route = (request: IncomingMessage, response: ServerResponse, call: Call) => void;

/** Answers as Podman's Docker API does, with routes for what a test is about. */
function listener(routes: Readonly<Record<string, Route>>, calls: Call[] = []): RequestListener {
  return (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://engine");
    const call = { method: request.method ?? "", path: pathname, query: searchParams, headers: request.headers };
    calls.push(call);
    const route = routes[`${call.method} ${pathname}`];
    if (route !== undefined) route(request, response, call);
    else if (pathname === "/_ping") pong(response);
    else say(response, 404, { cause: "no such thing", message: `no such thing: ${pathname}`, response: 404 });
  };
}

export function pong(response: ServerResponse): void {
  response.writeHead(200, { "api-version": "1.41", "libpod-api-version": "4.3.1", server: "Libpod/4.3.1 (linux)" });
  response.end("OK");
}

export function say(response: ServerResponse, status: number, value?: unknown): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(value === undefined ? undefined : JSON.stringify(value));
}

export async function readAll(request: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}

export interface RunningEngine {
  readonly path: string;
  readonly calls: readonly Call[];
  readonly server: Server;
  readonly connections: () => number;
  readonly client: EngineClient;
}

/** An engine on a Unix socket, and a client of it. */
export async function startEngine(
  routes: Readonly<Record<string, Route>> = {},
  path = freshPath(),
): Promise<RunningEngine> {
  const calls: Call[] = [];
  const server = createServer(listener(routes, calls));
  let connections = 0;
  server.on("connection", () => {
    connections += 1;
  });
  await listen(server, path);
  return { path, calls, server, connections: () => connections, client: connectTo(path) };
}

export async function startSecureEngine(options: {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly ca: Buffer;
}): Promise<number> {
  const server = createSecureServer({ ...options, requestCert: true, rejectUnauthorized: true }, listener({}));
  return await listenOnPort(server);
}

export async function startTcpEngine(routes: Readonly<Record<string, Route>> = {}): Promise<number> {
  return await listenOnPort(createServer(listener(routes)));
}

/** Something that listens and speaks as it likes. */
export async function startRaw(speak: (socket: Socket) => void, path = freshPath()): Promise<string> {
  const server = createNetServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => {});
    speak(socket);
  });
  await listen(server, path);
  return path;
}

export function connectTo(path: string, options: ConnectOptions = {}): EngineClient {
  const client = connectEngine({ kind: "unix", path }, options);
  cleanups.push(() => client[Symbol.dispose]());
  return client;
}

async function listen(server: NetServer, path: string): Promise<void> {
  await new Promise<void>((resolve) => server.listen(path, resolve));
  cleanups.push(() => server.close());
}

async function listenOnPort(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanups.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

/** The error that a call ends with. */
export async function failureOf(work: Promise<unknown>): Promise<EngineError> {
  try {
    await work;
  } catch (error) {
    return error as EngineError;
  }
  throw new Error("Nothing was thrown.");
}
