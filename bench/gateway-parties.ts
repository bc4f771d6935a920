import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { build } from "esbuild";
import type { NetworkPolicy, NetworkRule } from "../src/policy/network.ts";
import type { Job, Via } from "./gateway-load.ts";
import type { Ready, Role, SrtDoes } from "./gateway-program.ts";

/** Names of the server: the gateway joins connections to the one as they are, and looks into those to the other. */
const spliced = "spliced.example.com";
const opened = "opened.example.com";

/** Longer than anything here takes on a machine that is merely slow. */
const patienceMs = 60_000;

interface Stage {
  readonly directory: string;
  readonly program: string;
  readonly children: ChildProcess[];
}

/** A server, a client, and the proxies between the two: each in a process of its own. */
export class Parties implements AsyncDisposable {
  readonly server: Ready;
  /** The authority of the server. */
  readonly trustFile: string;
  readonly #stage: Stage;
  readonly #client: ChildProcess;

  private constructor(stage: Stage, server: Ready, client: ChildProcess) {
    this.#stage = stage;
    this.#client = client;
    this.server = server;
    this.trustFile = join(stage.directory, "server.pem");
    writeFileSync(this.trustFile, server.ca);
  }

  static async open(): Promise<Parties> {
    const directory = mkdtempSync(join(tmpdir(), "gateway-"));
    // Below the project, so that Node finds the packages that are not bundled.
    const stage: Stage = { directory, program: resolve(`.make/gateway-program-${process.pid}.mjs`), children: [] };
    try {
      await bundle(stage.program);
      const server = await start(stage, { kind: "server" });
      const client = await start(stage, { kind: "client" });
      return new Parties(stage, server.ready, client.child);
    } catch (error) {
      await endAll(stage);
      throw error;
    }
  }

  /** Removed when the parties end. */
  get directory(): string {
    return this.#stage.directory;
  }

  async relay(): Promise<Via> {
    const { ready } = await start(this.#stage, { kind: "relay", to: this.server.port });
    return { port: ready.port, isProxy: false, host: "localhost", hostPort: 443, ca: this.server.ca };
  }

  async gateway(): Promise<{ readonly pid: number; readonly spliced: Via; readonly opened: Via }> {
    const reach = { [spliced]: `127.0.0.1:${this.server.port}`, [opened]: `127.0.0.1:${this.server.port}` };
    const rules = [rule(spliced, null), rule(opened, ["/bytes/*", "/small", "/sink"])];
    const policy: NetworkPolicy = { learn: false, rules, secrets: [], reach };
    const { trustFile, directory } = this;
    const role: Role = { kind: "gateway", policy, trustFile, state: join(directory, "state") };
    const { ready, child } = await start(this.#stage, role);
    const way = { port: ready.port, isProxy: true, hostPort: 443 };
    return {
      pid: child.pid as number,
      spliced: { ...way, host: spliced, ca: this.server.ca },
      opened: { ...way, host: opened, ca: ready.ca },
    };
  }

  async srt(prefix: string, does: SrtDoes): Promise<Via> {
    const role: Role = { kind: "srt", prefix, ca: this.server.ca, does };
    const { ready } = await start(this.#stage, role, { NODE_EXTRA_CA_CERTS: this.trustFile });
    return { ...ready, isProxy: true, host: "localhost", hostPort: this.server.port };
  }

  /** Kills this process, too, when the parties end. */
  adopt(child: ChildProcess): void {
    this.#stage.children.push(child);
  }

  /** Has the client do something. */
  async ask(job: Job): Promise<readonly number[]> {
    const answer = nextMessage(this.#client, job.kind);
    this.#client.send(job);
    const { result, error } = (await answer) as { readonly result?: readonly number[]; readonly error?: string };
    if (result === undefined) throw new Error(`the client failed at ${error}`);
    return result;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await endAll(this.#stage);
  }
}

async function bundle(program: string): Promise<void> {
  await build({
    entryPoints: ["bench/gateway-program.ts"],
    outfile: program,
    bundle: true,
    minifySyntax: true,
    platform: "node",
    format: "esm",
    target: "node20",
    packages: "external",
    logLevel: "error",
  });
}

async function endAll({ children, directory, program }: Stage): Promise<void> {
  await Promise.all(
    children.map(async (child) => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    }),
  );
  for (const path of [directory, program]) rmSync(path, { recursive: true, force: true });
}

export function rule(host: string, paths: readonly string[] | null): NetworkRule {
  return { host, ports: [443], paths, methods: null, deny: false, local: false, origin: `a rule for ${host}` };
}

async function start(
  { program, directory, children }: Stage,
  role: Role,
  env: Readonly<Record<string, string>> = {},
): Promise<{ readonly child: ChildProcess; readonly ready: Ready }> {
  const child = fork(program, [JSON.stringify(role)], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    // Without the flags that this process may be profiled with.
    execArgv: [],
    // Temporary files that a program leaves are removed with the directory.
    env: { ...process.env, TMPDIR: directory, ...env },
  });
  children.push(child);
  const ready = (await nextMessage(child, role.kind)) as Ready;
  return { child, ready };
}

function nextMessage(child: ChildProcess, what: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const settle = () => {
      clearTimeout(timer);
      child.off("message", onMessage).off("exit", onExit);
    };
    const onMessage = (message: unknown) => {
      settle();
      resolve(message);
    };
    const onExit = (code: number | null, signal: string | null) => {
      settle();
      reject(new Error(`${what}: its process ended with ${code ?? signal}`));
    };
    const timer = setTimeout(() => {
      settle();
      reject(new Error(`${what}: nothing was heard for ${patienceMs / 1_000} s`));
    }, patienceMs);
    child.on("message", onMessage).on("exit", onExit);
  });
}
