import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttp, type IncomingMessage, type RequestListener } from "node:http";
import { createSecureServer, type ServerHttp2Stream } from "node:http2";
import { createServer as createHttps } from "node:https";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls, createServer as createTls, type TLSSocket } from "node:tls";
import type { AuditEntry } from "../../src/gateway/audit.ts";
import { makeAuthority } from "../../src/gateway/authority.ts";
import { proxyPort } from "../../src/gateway/connection.ts";
import { type Gateway, type GatewayOptions, openGateway } from "../../src/gateway/gateway.ts";
import type { NetworkPolicy, NetworkRule } from "../../src/policy/network.ts";

/** A rule as short as a test wants it. */
export function rule(host: string, more: Partial<NetworkRule> = {}): NetworkRule {
  return {
    host,
    ports: [80, 443],
    paths: null,
    methods: null,
    deny: false,
    local: false,
    origin: `rule for ${host}`,
    ...more,
  };
}

export function policyOf(rules: readonly NetworkRule[], more: Partial<NetworkPolicy> = {}): NetworkPolicy {
  return { learn: false, rules, secrets: [], reach: {}, ...more };
}

/** Servers on loopback, as the world outside, with an authority of their own. */
export class Outside implements AsyncDisposable {
  readonly authority = makeAuthority(new Date());
  readonly directory = mkdtempSync(join(tmpdir(), "gateway-"));
  /** What the gateway is told to believe. */
  readonly trustFile = join(this.directory, "authority.pem");
  readonly #servers: Server[] = [];
  readonly #sockets = new Set<Socket>();

  constructor() {
    writeFileSync(this.trustFile, this.authority.certificatePem);
  }

  async http(listener: RequestListener): Promise<number> {
    return this.#listen(createHttp(listener));
  }

  async https(host: string, listener: RequestListener): Promise<number> {
    return this.#listen(createHttps(this.#identity(host), listener));
  }

  /** Speaks HTTP/1.1 to whoever does not offer HTTP/2. */
  async http2(
    host: string,
    onStream: (stream: ServerHttp2Stream, headers: Record<string, unknown>) => void,
  ): Promise<number> {
    const server = createSecureServer(this.#identity(host));
    server.on("stream", onStream);
    return this.#listen(server as unknown as Server);
  }

  async tcp(onConnection: (socket: Socket) => void): Promise<number> {
    return this.#listen(createServer({ allowHalfOpen: true }, onConnection));
  }

  async tls(
    host: string,
    onConnection: (socket: TLSSocket) => void,
    more: { readonly ALPNProtocols?: string[] } = {},
  ): Promise<number> {
    return this.#listen(createTls({ ...this.#identity(host), ...more }, onConnection));
  }

  #identity(host: string): { readonly cert: string; readonly key: string } {
    const { certificatePem: cert, keyPem: key } = this.authority.leafFor(host);
    return { cert, key };
  }

  async #listen(server: Server): Promise<number> {
    this.#servers.push(server);
    server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.on("error", () => {}).once("close", () => this.#sockets.delete(socket));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return (server.address() as AddressInfo).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all(this.#servers.map((server) => new Promise((resolve) => server.close(resolve))));
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** A gateway whose doors are on this machine's loopback: only the namespace is missing. */
export class Inside implements AsyncDisposable {
  readonly authority = makeAuthority(new Date());
  readonly audit: AuditEntry[] = [];
  readonly gateway: Gateway;
  readonly #dialled = new Map<number, string>();
  readonly #doors = new Map<number, Promise<Server>>();

  constructor(outside: Outside, policy: NetworkPolicy, more: Partial<GatewayOptions> = {}) {
    const usual: GatewayOptions = {
      policy,
      secrets: [],
      authority: this.authority,
      audit: (entry) => this.audit.push(entry),
      trustFiles: [outside.trustFile],
    };
    // What changes is to be looked at anew.
    this.gateway = openGateway(Object.defineProperties(usual, Object.getOwnPropertyDescriptors(more)));
  }

  /** Where a door can be knocked at; `port` is what it is inside. */
  door(port: number): Promise<number> {
    const known = this.#doors.get(port) ?? this.#open(port);
    this.#doors.set(port, known);
    return known.then((server) => (server.address() as AddressInfo).port);
  }

  #open(port: number): Promise<Server> {
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      const address = this.#dialled.get(port);
      // In a box every address is local; here only this property of it can be had.
      if (address !== undefined) Object.defineProperty(socket, "localAddress", { value: address });
      this.gateway.take(socket, port);
    });
    return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
  }

  /** As a program inside does it: asks for a name, and dials the address that it is given. */
  async dial(name: string, port: number): Promise<Socket> {
    const question = [...name.split("."), ""].map((label) => String.fromCharCode(label.length) + label).join("");
    const query = Buffer.from(`\x12\x34\x01\0\0\x01\0\0\0\0\0\0${question}\0\x01\0\x01`, "latin1");
    const reply = Buffer.from(this.gateway.answer(query) as Uint8Array);
    this.#dialled.set(port, [...reply.subarray(-4)].join("."));
    const socket = await this.knock(port);
    await new Promise((resolve) => setImmediate(resolve));
    return socket;
  }

  async knock(port: number): Promise<Socket> {
    const socket = connect({ host: "127.0.0.1", port: await this.door(port), allowHalfOpen: true });
    socket.on("error", () => {});
    // Whoever is turned away at once may not even hear that he was let in.
    await new Promise((resolve) => socket.once("connect", resolve).once("close", resolve));
    return socket;
  }

  /** A tunnel through the proxy's door. */
  async connect(
    authority: string,
  ): Promise<{ readonly status: number; readonly socket: Socket; readonly rest: string }> {
    const socket = await this.knock(proxyPort);
    socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
    const head = await readUntil(socket, "\r\n\r\n");
    return { status: Number(head.split(" ")[1]), socket, rest: head };
  }

  /** The same, and TLS through it. */
  async secure(host: string, { port = 443, servername = host, alpn = ["http/1.1"] } = {}): Promise<TLSSocket> {
    const { socket } = await this.connect(`${host}:${port}`);
    const secure = connectTls({ socket, servername, ALPNProtocols: alpn, ca: this.#believed() });
    secure.on("error", () => {});
    await new Promise((resolve, reject) => secure.once("secureConnect", resolve).once("error", reject));
    return secure;
  }

  /** What is believed at the other end of a tunnel: the session's authority, and the world's own. */
  believed: readonly string[] = [];
  #believed(): string[] {
    return [this.authority.certificatePem, ...this.believed];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.gateway[Symbol.dispose]();
    const servers = await Promise.all(this.#doors.values());
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  }
}

export function readUntil(socket: Socket, end: string | RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    let seen = "";
    const onData = (bytes: Buffer) => {
      seen += bytes.toString("latin1");
      if (typeof end === "string" ? !seen.includes(end) : !end.test(seen)) return;
      socket.off("data", onData).off("close", onClose);
      socket.pause();
      resolve(seen);
    };
    const onClose = () => reject(new Error(`closed after ${JSON.stringify(seen)}`));
    socket.on("data", onData).once("close", onClose).resume();
  });
}

/** All that comes until the other end has finished. */
export async function readAll(socket: Socket): Promise<string> {
  const parts: Buffer[] = [];
  return new Promise((resolve) => {
    const done = () => resolve(Buffer.concat(parts).toString("latin1"));
    socket
      .on("data", (bytes: Buffer) => parts.push(bytes))
      .once("end", done)
      .once("close", done);
    socket.resume();
  });
}

/** One request as it stands, and all that is answered. */
export async function say(socket: Socket, text: string): Promise<string> {
  const answer = readAll(socket);
  socket.write(text, "latin1");
  const all = await answer;
  socket.end();
  return all;
}

/** Its head, and its body without chunks. */
export function parse(answer: string): { readonly status: number; readonly head: string; readonly body: string } {
  const at = answer.indexOf("\r\n\r\n");
  const head = answer.slice(0, at);
  const rest = answer.slice(at + 4);
  const body = /^transfer-encoding: chunked/im.test(head) ? unchunk(rest) : rest;
  return { status: Number(head.split(" ")[1]), head, body };
}

function unchunk(text: string): string {
  const [, size, rest] = /^([0-9a-f]+)\r\n(.*)$/is.exec(text) ?? [];
  const length = Number.parseInt(size ?? "0", 16);
  return length === 0 ? "" : (rest as string).slice(0, length) + unchunk((rest as string).slice(length + 2));
}

/** The end of a connection, or a moment in which there is none. */
export function ended(socket: Socket): Promise<void> {
  if (socket.destroyed || socket.readableEnded) return Promise.resolve();
  return new Promise((resolve) => {
    socket.once("end", resolve).once("close", resolve);
    socket.resume();
  });
}

export function bodyOf(request: IncomingMessage): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    request.on("data", (bytes: Buffer) => {
      text += bytes.toString("latin1");
    });
    request.once("end", () => resolve(text));
  });
}
