import { generateKeyPairSync, verify } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo, Server, Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeAuthority } from "../../src/gateway/authority.ts";
import type { GitHubApp } from "../../src/github/app.ts";
import { makeRepositories, serveGit } from "../gateway/git-server.ts";

/** One pair for all: making them takes longer than most tests. */
const pair = generateKeyPairSync("rsa", { modulusLength: 2_048 });
export const appKey = pair.privateKey.export({ type: "pkcs1", format: "pem" }).toString();

/** What the town answers to one request instead of its own answer. */
export interface Trouble {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

export interface TownOptions {
  /** How long its tokens live. Default: an hour, as GitHub's. */
  readonly tokenMs?: number;
  readonly tls?: boolean;
  /** The name that its certificate is for. Default: `localhost`. */
  readonly name?: string;
  /** How far the town's clock is ahead of the machine's. */
  readonly aheadMs?: number;
  /** Whether each of its tokens is longer than the one before, as tokens that are signed may be. */
  readonly growing?: boolean;
}

interface Minted {
  readonly value: string;
  readonly expires: number;
  /** The same moment, by a clock that does not jump. */
  readonly ends: number;
  readonly repository: string | null;
  readonly permissions: Readonly<Record<string, string>>;
}

/**
 * GitHub on loopback, as far as an App sees it: the endpoints below `/api/v3`, as an Enterprise server has them, and
 * repositories by git's own program. A signature is verified with the App's public key, and a token opens what it was
 * minted for until its time is over.
 */
export class Town implements AsyncDisposable {
  readonly appId = 4711;
  readonly installationId = 42;
  readonly directory = mkdtempSync(join(tmpdir(), "town-"));
  /** The authority that its certificate is of. */
  readonly trustFile = join(this.directory, "authority.pem");
  readonly keyFile = join(this.directory, "app.pem");
  /** What has been asked for, in order: `POST /app/installations/42/access_tokens`. */
  readonly asked: string[] = [];
  readonly minted: Minted[] = [];
  readonly signatures: string[] = [];
  /** The first is answered next. */
  readonly troubles: Trouble[] = [];
  /** What the installation has been granted. */
  permissions: Readonly<Record<string, string>> = { contents: "write", metadata: "read", pull_requests: "write" };
  suspended = false;
  /** How often git was let in, and how often not. */
  readonly git = { served: 0, refused: 0 };
  /** What git, or who speaks like it, has sent besides. */
  readonly cookies: string[] = [];
  /** What git is told, by what it has sent to be let in, instead of being served. */
  gitAnswer: ((authorization: string) => string) | null = null;
  aheadMs: number;
  tokenMs: number;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #growing: boolean;
  readonly #scheme: "http" | "https";

  private constructor({ tokenMs = 3_600_000, tls = false, name, aheadMs = 0, growing = false }: TownOptions) {
    this.tokenMs = tokenMs;
    this.#growing = growing;
    this.aheadMs = aheadMs;
    const authority = makeAuthority(new Date());
    writeFileSync(this.trustFile, authority.certificatePem);
    writeFileSync(this.keyFile, appKey, { mode: 0o600 });
    makeRepositories(join(this.directory, "git"), "example/name.git", "example/other.git");
    const { certificatePem: cert, keyPem: key } = authority.leafFor(name ?? "localhost");
    this.#scheme = tls ? "https" : "http";
    const listener: RequestListener = (request, response) => this.#answer(request, response);
    this.#server = tls ? createSecureServer({ cert, key }, listener) : createServer(listener);
    this.#server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on("error", () => {}).once("close", () => this.#sockets.delete(socket));
    });
  }

  static async open(options: TownOptions = {}): Promise<Town> {
    const town = new Town(options);
    await new Promise<void>((resolve) => town.#server.listen(0, "localhost", resolve));
    return town;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get origin(): string {
    return `${this.#scheme}://localhost:${this.port}`;
  }

  get app(): GitHubApp {
    const { appId, installationId, keyFile: privateKeyPath } = this;
    return { appId, installationId, privateKeyPath, apiUrl: `${this.origin}/api/v3` };
  }

  now(): number {
    return Date.now() + this.aheadMs;
  }

  /** Tokens end by this one: GitHub's clock does not jump with that of the machine. */
  #steady(): number {
    return performance.now() + this.aheadMs;
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { pathname } = new URL(request.url ?? "", "http://town");
    response.sendDate = false;
    response.setHeader("date", new Date(this.now()).toUTCString());
    if (!pathname.startsWith("/api/v3/")) {
      this.#serveGit(request, response, pathname);
      return;
    }
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const path = pathname.slice("/api/v3".length);
      this.asked.push(`${request.method} ${path}`);
      const text = Buffer.concat(parts).toString("utf8");
      const { status, headers, body } =
        this.troubles.shift() ?? this.#api(`${request.method} ${path}`, request, text === "" ? {} : JSON.parse(text));
      response.writeHead(status, { "content-type": "application/json; charset=utf-8", ...headers });
      response.end(typeof body === "string" ? body : JSON.stringify(body));
    });
  }

  #api(route: string, request: IncomingMessage, body: Readonly<Record<string, unknown>>): Trouble {
    const refused = this.#signatureTrouble(request.headers.authorization ?? "");
    if (refused !== null) return { status: 401, body: { message: refused } };
    if (route === "GET /app") {
      const owner = { login: "example" };
      return { status: 200, body: { id: this.appId, slug: "town-app", name: "Town App", owner } };
    }
    if (/^GET \/repos\/example\/(?:name|other)\/installation$/.test(route)) {
      return { status: 200, body: { id: this.installationId } };
    }
    const installation = `/app/installations/${this.installationId}`;
    if (route === `GET ${installation}`) {
      return {
        status: 200,
        body: {
          id: this.installationId,
          account: { login: "example" },
          repository_selection: "selected",
          suspended_at: this.suspended ? "2026-01-01T00:00:00Z" : null,
          permissions: this.permissions,
        },
      };
    }
    if (route === `POST ${installation}/access_tokens`) return this.#mint(body);
    return { status: 404, body: { message: "Not Found", documentation_url: "https://docs.example" } };
  }

  /** As GitHub tells it, word by word. */
  #signatureTrouble(authorization: string): string | null {
    const [, jwt = ""] = /^bearer (.+)$/i.exec(authorization) ?? [];
    this.signatures.push(jwt);
    const [head = "", payload = "", signature = ""] = jwt.split(".");
    const signed = Buffer.from(`${head}.${payload}`);
    if (!verify("RSA-SHA256", signed, pair.publicKey, Buffer.from(signature, "base64url"))) {
      return "A JSON web token could not be decoded";
    }
    const { iat, exp, iss } = JSON.parse(Buffer.from(payload, "base64url").toString("utf8"));
    const now = this.now() / 1_000;
    if (iss !== this.appId) return "'Issuer' claim ('iss') must be an Integer";
    if (iat > now) {
      return "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued";
    }
    if (exp < now) {
      return "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires";
    }
    return exp > now + 600 ? "'Expiration time' claim ('exp') is too far in the future" : null;
  }

  /** Repositories are looked for by name, whoever was meant to own them; and to ask for nothing is to ask for all. */
  #mint({ repositories, permissions = {} }: Readonly<Record<string, unknown>>): Trouble {
    if (this.suspended) return { status: 403, body: { message: "This installation has been suspended" } };
    const names = (repositories ?? []) as readonly string[];
    if (names.some((name) => name !== "name" && name !== "other")) {
      const message =
        "There is at least one repository that does not exist or is not accessible to the parent installation.";
      return { status: 422, body: { message } };
    }
    const isSaid = Object.keys(permissions as object).length > 0;
    const asked = Object.entries(isSaid ? (permissions as Record<string, string>) : this.permissions);
    const granted = ([name, level]: readonly [string, string]) =>
      this.permissions[name] === "write" || this.permissions[name] === level;
    if (!asked.every(granted)) {
      return { status: 422, body: { message: "The permissions requested are not granted to this installation." } };
    }
    const expires = this.now() + this.tokenMs;
    const ends = this.#steady() + this.tokenMs;
    const length = 32 + (this.#growing ? this.minted.length : 0);
    const value = `ghs_${String(this.minted.length).padStart(4, "0")}${"x".repeat(length)}`;
    this.minted.push({ value, expires, ends, repository: names[0] ?? null, permissions: Object.fromEntries(asked) });
    const expires_at = new Date(expires).toISOString();
    const described = names.map((name) => ({ id: 1, name, full_name: `example/${name}` }));
    const listed = names.length === 0 ? {} : { repositories: described };
    const given = { ...Object.fromEntries(asked), metadata: "read" };
    return {
      status: 201,
      body: { token: value, expires_at, permissions: given, repository_selection: "selected", ...listed },
    };
  }

  #serveGit(request: IncomingMessage, response: ServerResponse, path: string): void {
    const { authorization = "", cookie } = request.headers;
    if (cookie !== undefined) this.cookies.push(cookie);
    if (this.gitAnswer !== null && authorization !== "") {
      response.writeHead(403, { "content-type": "text/plain" }).end(this.gitAnswer(authorization));
      return;
    }
    if (this.#opens(authorization, path)) {
      this.git.served += 1;
      serveGit(join(this.directory, "git"))(request, response);
      return;
    }
    // Git comes without a name first; that is no failure.
    if (request.headers.authorization !== undefined) this.git.refused += 1;
    response.writeHead(401, { "www-authenticate": 'Basic realm="GitHub"' }).end();
  }

  #opens(authorization: string, path: string): boolean {
    const [, encoded = ""] = /^basic (.+)$/i.exec(authorization) ?? [];
    const [user, password] = Buffer.from(encoded, "base64").toString("utf8").split(":");
    const token = this.minted.find(({ value }) => value === password);
    if (user !== "x-access-token" || token === undefined || token.ends <= this.#steady()) return false;
    return token.repository === null || path.startsWith(`/example/${token.repository}.git/`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
    rmSync(this.directory, { recursive: true, force: true });
  }
}
