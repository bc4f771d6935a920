import { copyFileSync, rmSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import type { PartialConfig } from "../../../src/config/types.ts";
import type { AuditEntry } from "../../../src/gateway/audit.ts";
import { startSession } from "../../../src/keeper/kept-session.ts";
import { planSandbox } from "../../../src/keeper/sandbox.ts";
import { Town } from "../../gateway/stage.ts";
import { World } from "../../world.ts";
import { EngineWorld } from "../engine-box.ts";
import type { TestEngine } from "../engines/engine.ts";

/** What the probe saw, by the names of what it tried. */
export type Seen = Readonly<Record<string, string>>;

/** A box whose network is judged, and what it has of the owner's. */
export interface NetworkBox extends AsyncDisposable {
  readonly world: World;
  readonly id: string;
  /** All that was asked for at its doors so far. */
  readonly asked: readonly AuditEntry[];
  /** Has the probe do one of its things, and end. */
  probe(...words: readonly string[]): Promise<Seen>;
  /** Has it begin, and go on. Resolves with its first line. */
  begin(...words: readonly string[]): Promise<string>;
  shell(script: string): Promise<string>;
}

/** Secrets of the owner's, one of them masked. Each has its own shape, and none is found by chance. */
export const realKey = "sk-ant-Zq7Real0Key1Of2The3Owner4Jm9Xw8";
export const plainKey = "canary-That-May-Be-Read";

/** The town that boxes of these tests may see some of. */
export async function openTown(): Promise<Town & { readonly outerPort: number }> {
  const town = new Town();
  const plain = town.echo("plain");
  const outerPort = await town.http("plain.example.com", (request, response) => {
    if (request.url !== "/redirect") return plain(request, response);
    (response as ServerResponse).writeHead(302, { location: "http://closed.example.com/" }).end();
  });
  await town.https("paths.example.com");
  await town.https("open.example.com");
  await town.http("a.wild.example.com");
  const api = town.echo("api");
  await town.https(
    "api.example.com",
    (request, response) => {
      if (request.url !== "/reflect") return api(request, response);
      // All that a careless server may give back: in a header, and in a body that comes in pieces.
      const { authorization = "" } = request.headers;
      response.setHeader("x-echo", authorization);
      response.write(`you are ${authorization.slice(0, 20)}`);
      setTimeout(() => response.end(`${authorization.slice(20)}\n`), 20);
    },
    reflectSocket,
  );
  return Object.assign(town, { outerPort });
}

/** Grants a WebSocket, and says in its first frame who was let in, and with what extensions. */
function reflectSocket({ headers }: IncomingMessage, socket: Duplex): void {
  const said = Buffer.from(`${headers.authorization} with ${headers["sec-websocket-extensions"] ?? "nothing"}`);
  socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
  socket.end(Buffer.concat([Buffer.from([0x81, said.length]), said]));
}

export function configOf(town: Awaited<ReturnType<typeof openTown>>, keyFile: string): PartialConfig {
  return {
    network: {
      mode: "allowlist",
      domains: ["plain.example.com", "open.example.com", "*.wild.example.com", "api.example.com", "localhost"],
      rules: [
        { host: "paths.example.com", path: "/exact", methods: ["GET"] },
        { host: "paths.example.com", path: "/allowed/**" },
        { host: "paths.example.com", path: "/post", methods: ["POST"] },
        { host: "localhost", port: town.outerPort, local: true },
      ],
      reach: town.reach,
    },
    secrets: { api: { file: keyFile, hosts: ["api.example.com"] }, plain: { env: "OWNERS_PLAIN_KEY" } },
    environment: {
      set: { API_KEY: "!secret api", PLAIN_KEY: "!secret plain", OUTER_PORT: String(town.outerPort) },
    },
  } as PartialConfig;
}

/** A world on an engine, or behind bubblewrap where there is none, whose owner has said what is allowed. */
export function openNetworkWorld(engine: TestEngine | null, town: Town): { world: World; keyFile: string } {
  const world = engine === null ? new World() : new EngineWorld(engine);
  world.env["SSL_CERT_FILE"] = town.trustFile;
  world.env["OWNERS_PLAIN_KEY"] = plainKey;
  const keyFile = world.file("home/.keys/api", `${realKey}\n`, 0o600);
  copyFileSync(join(import.meta.dirname, "probe.py"), join(world.project, "probe.py"));
  return { world, keyFile };
}

export async function openNetworkBox(
  engine: TestEngine | null,
  town: Awaited<ReturnType<typeof openTown>>,
): Promise<NetworkBox> {
  const { world, keyFile } = openNetworkWorld(engine, town);
  const place = engine === null ? {} : { image: engine.image, engine_socket: engine.socket };
  const remove = () => {
    if (world instanceof EngineWorld) world.remove();
    else rmSync(world.directory, { recursive: true, force: true });
  };
  try {
    const planned = await planSandbox({
      command: ["sleep", "300"],
      session: true,
      cwd: world.project,
      env: world.env,
      config: { ...configOf(town, keyFile), ...place },
    });
    const asked: AuditEntry[] = [];
    const session = await startSession(planned, { onAsked: (entry) => asked.push(entry) });
    const start = async (...argv: readonly [string, ...string[]]) => {
      const running = await session.sandbox.exec({ argv, timeoutMs: 120_000 });
      running.stdin.end();
      return running;
    };
    const run = async (...argv: readonly [string, ...string[]]) => {
      const running = await start(...argv);
      const [stdout, stderr, { code }] = await Promise.all([
        text(running.stdout),
        text(running.stderr),
        running.exited,
      ]);
      if (code !== 0) throw new Error(`${argv.join(" ")}: ${code}: ${stderr}`);
      return stdout;
    };
    return {
      world,
      id: session.id,
      asked,
      probe: async (...words) => readSeen(await run("python3", "probe.py", ...words)),
      async begin(...words) {
        const { stdout } = await start("python3", "-u", "probe.py", ...words);
        return new Promise((resolve) => stdout.once("data", (said: Buffer) => resolve(said.toString().trim())));
      },
      shell: (script) => run("sh", "-c", script),
      async [Symbol.asyncDispose]() {
        await session[Symbol.asyncDispose]();
        if (world instanceof EngineWorld) {
          for (let tries = 0; tries < 100 && world.containers().length > 0; tries++) await sleep(50);
        }
        remove();
      },
    };
  } catch (error) {
    remove();
    throw error;
  }
}

function readSeen(printed: string): Seen {
  const pairs = printed
    .split("\n")
    .filter((line) => line.includes("\t"))
    .map((line) => line.split("\t") as [string, string]);
  return Object.fromEntries(pairs.map(([name, text]) => [name, readEscapes(text)]));
}

/** As Python's `unicode_escape` writes it. */
function readEscapes(written: string): string {
  const short: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", "\\": "\\" };
  return written.replaceAll(/\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|(.))/g, (_, two, four, one) =>
    one === undefined ? String.fromCharCode(Number.parseInt(two ?? four, 16)) : (short[one] ?? one),
  );
}
