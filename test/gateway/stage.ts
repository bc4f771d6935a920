import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttp, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { createSecureServer } from "node:http2";
import { createServer as createHttps } from "node:https";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { expect } from "vitest";
import type { PartialConfig } from "../../src/config/types.ts";
import type { AuditEntry } from "../../src/gateway/audit.ts";
import { makeAuthority } from "../../src/gateway/authority.ts";
import type { Outcome, World } from "../world.ts";
import { bodyOf } from "./kit.ts";

/** What a server says of a request, so that whoever asked can be asked what it was. */
export interface Heard {
  readonly server: string;
  readonly version: string;
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: string;
}

type OnUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

/** Servers on loopback, each by its name, as the world outside has them: with certificates of an authority of its own. */
export class Town implements AsyncDisposable {
  readonly authority = makeAuthority(new Date());
  readonly directory = mkdtempSync(join(tmpdir(), "town-"));
  /** Whom to believe who trusts this authority alone. */
  readonly trustFile = join(this.directory, "authority.pem");
  /** Where the names lead, as `network.reach` has it. */
  readonly reach: Record<string, string> = {};
  /** All that was asked of those who echo. */
  readonly heard: Heard[] = [];
  readonly #servers: Server[] = [];
  readonly #sockets = new Set<Socket>();

  constructor() {
    writeFileSync(this.trustFile, this.authority.certificatePem);
  }

  http(name: string, listener: RequestListener = this.echo(name), onUpgrade?: OnUpgrade): Promise<number> {
    const server = createHttp(listener);
    if (onUpgrade !== undefined) server.on("upgrade", onUpgrade);
    return this.#listen(name, server);
  }

  /** HTTP/2 and HTTP/1.1, as the client likes. */
  https(name: string, listener: RequestListener = this.echo(name), onUpgrade?: OnUpgrade): Promise<number> {
    const { certificatePem: cert, keyPem: key } = this.authority.leafFor(name);
    const server = createSecureServer({ cert, key, allowHTTP1: true }, listener as never);
    if (onUpgrade !== undefined) server.on("upgrade", onUpgrade);
    return this.#listen(name, server as unknown as Server);
  }

  /** HTTP/1.1 alone. */
  https1(name: string, listener: RequestListener): Promise<number> {
    const { certificatePem: cert, keyPem: key } = this.authority.leafFor(name);
    return this.#listen(name, createHttps({ cert, key }, listener));
  }

  tcp(name: string, onConnection: (socket: Socket) => void): Promise<number> {
    return this.#listen(name, createServer({ allowHalfOpen: true }, onConnection));
  }

  /** Answers with what it has heard. */
  echo(server: string): RequestListener {
    return async (request: IncomingMessage, response: ServerResponse) => {
      const { httpVersion: version, method = "", url = "", headers } = request;
      const body = await bodyOf(request);
      const heard: Heard = { server, version, method, url, headers: { ...headers }, body };
      this.heard.push(heard);
      response.setHeader("content-type", "application/json");
      response.end(`${JSON.stringify(heard)}\n`);
    };
  }

  async #listen(name: string, server: Server): Promise<number> {
    this.#servers.push(server);
    server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on("error", () => {}).once("close", () => this.#sockets.delete(socket));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    this.reach[name] = `127.0.0.1:${port}`;
    return port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all(this.#servers.map((server) => new Promise((resolve) => server.close(resolve))));
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** Has the owner of a world write down what may be reached in a town. */
export function allow(world: World, town: Town, config: PartialConfig): void {
  const { network, ...rest } = config;
  const all = { ...rest, network: { mode: "allowlist", ...(network as object), reach: town.reach } };
  world.file(join(world.home, ".config/podbot/config.json"), JSON.stringify(all));
  world.env["SSL_CERT_FILE"] = town.trustFile;
}

/** What was asked for by the run that asked last, but for names: each in a few words, sorted, since each is told of when it is over. */
export async function auditOf(world: World): Promise<readonly string[]> {
  return (await entriesOf(world))
    .filter(({ kind }) => kind !== "dns")
    .map(inWords)
    .toSorted();
}

/** Each of these was asked for once, and nothing else. */
export async function expectAsked(world: World, ...lines: readonly string[]): Promise<void> {
  expect(await auditOf(world)).toEqual(lines.toSorted());
}

async function entriesOf(world: World): Promise<readonly AuditEntry[]> {
  const { status, stdout, stderr } = await world.podbot(["audit", "--json"]);
  if (status !== 0) throw new Error(stderr);
  return readEntries(stdout);
}

/** Of what `podbot audit --json` prints, what was asked for. */
export function readEntries(printed: string): readonly AuditEntry[] {
  return printed
    .split("\n")
    .filter((line) => line.includes('"verdict"'))
    .map((line) => JSON.parse(line) as AuditEntry);
}

/** `allowed GET https://api.example.com/v1 200`, `allowed tls api.example.com:443`, `refused … (host)`. */
function inWords({ kind, verdict, host, port, scheme, method, path, status, reason }: AuditEntry): string {
  const usual = { http: 80, https: 443 };
  const place = scheme !== undefined && usual[scheme] === port ? host : `${host}:${port}`;
  const what = kind === "http" ? `${method} ${scheme}://${place}${path}` : `${kind} ${place}`;
  const how = [status, verdict === "allowed" || reason === undefined ? undefined : `(${reason})`];
  return [verdict, what, ...how].filter((word) => word !== undefined).join(" ");
}

/** The JSON texts in what a program has printed, one after the other. */
export function jsonIn({ stdout }: Pick<Outcome, "stdout">): readonly Readonly<Record<string, unknown>>[] {
  return [...stdout.matchAll(/^\{.*\}$|^\{$[\s\S]*?^\}$/gm)].map(
    ([text]) => JSON.parse(text) as Record<string, unknown>,
  );
}
