// The programs that run in their own processes while the gateway is measured: the server, the proxies, the client.
import { createServer as createHttps } from "node:https";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { join } from "node:path";
import { createSecureContext, type SecureContext, type TLSSocket } from "node:tls";
import { pathToFileURL } from "node:url";
import { makeAuthority } from "../src/gateway/authority.ts";
import { proxyPort } from "../src/gateway/connection.ts";
import { openGateway } from "../src/gateway/gateway.ts";
import { openAudit } from "../src/keeper/audit.ts";
import type { NetworkPolicy } from "../src/policy/network.ts";
import { newSessionId } from "../src/registry/store.ts";
import { type Job, work } from "./gateway-load.ts";

/** What a program is told when it is started. */
export type Role =
  | { readonly kind: "server" }
  | { readonly kind: "relay"; readonly to: number }
  | {
      readonly kind: "gateway";
      readonly policy: NetworkPolicy;
      readonly trustFile: string;
      /** Where the gateway writes its audit, as in a real session. */
      readonly state: string;
    }
  | { readonly kind: "srt"; readonly prefix: string; readonly ca: string; readonly does: SrtDoes }
  | { readonly kind: "client" };

/** Joins connections as they are, opens them, or opens them and judges each request by its path. */
export type SrtDoes = "join" | "open" | "judge";

/** What it says when it is ready. */
export interface Ready {
  readonly port: number;
  /** The authority to trust at its port, if it has one. */
  readonly ca: string;
}

/** Most of an answer is always the same. */
const piece = Buffer.alloc(65_536, "podbot ");
const small = Buffer.alloc(1024, "podbot ");

async function play(role: Role): Promise<Ready> {
  switch (role.kind) {
    case "server":
      return serve();
    case "relay":
      return { port: await listen(relay(role.to)), ca: "" };
    case "gateway":
      return keepGateway(role);
    case "srt":
      return keepSrt(role);
    case "client":
      takeJobs();
      return { port: 0, ca: "" };
  }
}

/** Shows for every name a certificate of its own authority. */
async function serve(): Promise<Ready> {
  const authority = makeAuthority(new Date());
  const contexts = new Map<string, SecureContext>();
  const contextFor = (host: string): SecureContext => {
    const { certificatePem: cert, keyPem: key } = authority.leafFor(host);
    const context = contexts.get(host) ?? createSecureContext({ cert, key });
    contexts.set(host, context);
    return context;
  };
  const server = createHttps({ SNICallback: (name, callback) => callback(null, contextFor(name)) });
  server.on("request", (request, response) => {
    const [, bytes] = /^\/bytes\/(\d+)$/.exec(request.url ?? "") ?? [];
    if (bytes === undefined) {
      request.resume().once("end", () => response.setHeader("Content-Length", small.length).end(small));
      return;
    }
    let left = Number(bytes);
    response.setHeader("Content-Length", left);
    const more = () => {
      while (left > 0) {
        const part = left < piece.length ? piece.subarray(0, left) : piece;
        left -= part.length;
        if (!response.write(part)) return void response.once("drain", more);
      }
      response.end();
    };
    more();
  });
  return { port: await listen(server), ca: authority.certificatePem };
}

/** The simplest relay, as the measure of what is possible. */
function relay(to: number): Server {
  return createServer({ noDelay: true }, (inner) => {
    const outer = connect({ host: "127.0.0.1", port: to, noDelay: true });
    for (const socket of [inner, outer]) socket.on("error", () => {});
    inner.pipe(outer);
    outer.pipe(inner);
  });
}

async function keepGateway({ policy, trustFile, state }: Extract<Role, { kind: "gateway" }>): Promise<Ready> {
  const authority = makeAuthority(new Date());
  const audit = openAudit(state, newSessionId(), {
    about: { agent: "bench", cwd: "/", mode: "allowlist" },
    onFailure: (failure) => {
      throw failure;
    },
  });
  const gateway = openGateway({
    policy,
    secrets: [],
    authority,
    trustFiles: [trustFile],
    ahead: (line) => audit.ahead(line),
    audit: (entry) => audit.write(entry),
  });
  const door = createServer({ allowHalfOpen: true }, (socket) => gateway.take(socket, proxyPort));
  return { port: await listen(door), ca: authority.certificatePem };
}

/** Starts srt's proxy as srt does. NODE_EXTRA_CA_CERTS makes it trust our server. */
async function keepSrt({ prefix, ca, does }: Extract<Role, { kind: "srt" }>): Promise<Ready> {
  const part = (name: string) =>
    import(
      pathToFileURL(join(prefix, "node_modules/@anthropic-ai/sandbox-runtime/dist/sandbox", `${name}.js`)).href
    ) as Promise<Record<string, (options: object) => never>>;
  const { createHttpProxyServer } = await part("http-proxy");
  const { createMitmCA } = await part("mitm-ca");
  const mitmCA = does === "join" ? undefined : (createMitmCA?.({}) as unknown as { readonly certPem: string });
  const server = createHttpProxyServer?.({
    filter: (_port: number, host: string) => host === "localhost",
    ...(mitmCA === undefined ? {} : { mitmCA }),
    ...(does === "judge" ? { filterRequest: judge } : {}),
  }) as unknown as Server;
  return { port: await listen(server), ca: mitmCA?.certPem ?? ca };
}

/** The gateway's rule as a filter of srt. */
async function judge({ url }: Request): Promise<{ readonly action: "allow" | "deny" }> {
  return { action: /^\/(?:bytes\/[^/]+|small|sink)$/.test(new URL(url).pathname) ? "allow" : "deny" };
}

function takeJobs(): void {
  const kept: TLSSocket[] = [];
  process.on("message", (job: Job) => {
    work(job, kept).then(
      (result) => process.send?.({ result }),
      (error: Error) => process.send?.({ error: `${job.kind}: ${error.message}` }),
    );
  });
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", 4096, resolve));
  return (server.address() as AddressInfo).port;
}

// The parent may be killed before it can end this process.
process.once("disconnect", () => process.exit());
process.send?.(await play(JSON.parse(process.argv[2] as string)));
