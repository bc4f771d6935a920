import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import type { PartialConfig } from "../../src/config/types.ts";
import { ownerName } from "../../src/keeper/engine.ts";
import type { Furnishing } from "../../src/keeper/furnish.ts";
import { startSession } from "../../src/keeper/kept-session.ts";
import type { PlannedSandbox } from "../../src/keeper/planned.ts";
import { planSandbox } from "../../src/keeper/sandbox.ts";
import { World } from "../world.ts";
import { networkWords, type TestEngine } from "./engines/engine.ts";

/** A world whose sessions are containers of one engine. */
export class EngineWorld extends World {
  readonly engine: TestEngine;
  /** By this label its containers are told from those of others. */
  readonly owner: string;

  constructor(engine: TestEngine) {
    super();
    this.engine = engine;
    Object.assign(this.env, networkWords(engine));
    this.owner = ownerName(join(this.home, ".local/state/podbot"));
  }

  plan(config: PartialConfig = {}, env: Readonly<Record<string, string>> = {}): Promise<PlannedSandbox> {
    const { image, socket } = this.engine;
    return planSandbox({
      command: ["sleep", "300"],
      session: true,
      cwd: this.project,
      env: { ...this.env, ...env },
      config: { image, engine_socket: socket, ...config },
    });
  }

  /** Names of its containers, in whatever state. Asked by curl, which costs a fraction of an engine's command line. */
  containers(): readonly string[] {
    const filters = encodeURIComponent(JSON.stringify({ label: [`podbot.owner=${this.owner}`] }));
    const address = `http://engine/v1.40/containers/json?all=true&filters=${filters}`;
    const flags = ["--silent", "--show-error", "--fail", "--noproxy", "*"];
    const words = [...flags, "--unix-socket", this.engine.socket, address];
    let asked = spawnSync("curl", words, { encoding: "utf8" });
    // Podman fails to list any where one goes away meanwhile, and says so by its status.
    for (let tries = 0; tries < 20 && asked.status === 22; tries++)
      asked = spawnSync("curl", words, { encoding: "utf8" });
    if (asked.status !== 0) throw new Error(asked.stderr);
    const found = JSON.parse(asked.stdout) as readonly { readonly Names: readonly string[]; readonly State: string }[];
    return (
      found
        .map(({ Names, State }) => ({ name: Names[0]?.replace(/^\//, "") ?? "", state: State }))
        // A helper that was started has done its work when a box is there, and the engine is about to remove it.
        .filter(({ name, state }) => !name.endsWith("-doors") || state === "created")
        .map(({ name }) => name)
    );
  }

  inspect(container: string): Inspection {
    const { status, stdout, stderr } = this.engine.cli("inspect", container);
    if (status !== 0) throw new Error(stderr);
    return { text: stdout, ...(JSON.parse(stdout) as readonly [Omit<Inspection, "text">])[0] };
  }

  /** Removes the directory, also what belongs to users that only the engine can become. */
  remove(): void {
    try {
      rmSync(this.directory, { recursive: true, force: true });
    } catch (error) {
      const binding = ["--volume", `${this.directory}:/world`, "--network", "none"];
      const limits = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"];
      this.engine.cli("run", "--rm", ...limits, ...binding, this.engine.image, "sh", "-c", "rm -rf /world/*");
      rmSync(this.directory, { recursive: true, force: true });
      throw error;
    }
  }
}

/** The little that is asked of what an engine says of a container, in words that Docker and Podman share. */
export interface Inspection {
  readonly text: string;
  readonly State: { readonly Pid: number };
  readonly Config: { readonly Labels: Readonly<Record<string, string>> };
  readonly Mounts: readonly { readonly Type: string; readonly Name?: string }[];
  readonly HostConfig: {
    readonly Privileged: boolean;
    readonly SecurityOpt: readonly string[] | null;
    readonly Memory: number;
  };
}

export interface Said {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A container with nothing in it but the warden. */
export interface OpenBox extends AsyncDisposable {
  readonly world: EngineWorld;
  readonly name: string;
  readonly id: string;
  readonly warnings: readonly string[];
  readonly furnished: readonly Furnishing[];
  /** A script of the shell, by whoever is the user inside. */
  shell(script: string, env?: Readonly<Record<string, string>>): Promise<Said>;
  python(script: string): Promise<Said>;
  inspect(): Inspection;
}

export async function openBox(
  engine: TestEngine,
  config: PartialConfig = {},
  env: Readonly<Record<string, string>> = {},
): Promise<OpenBox> {
  const world = new EngineWorld(engine);
  try {
    const planned = await world.plan(config, env);
    const furnished: Furnishing[] = [];
    const session = await startSession(planned, { onFurnished: (done) => furnished.push(done) });
    const name = `podbot-${session.id}`;
    const run = async (argv: readonly [string, ...string[]], more: Readonly<Record<string, string>> = {}) => {
      const running = await session.sandbox.exec({ argv, env: more, timeoutMs: 60_000 });
      running.stdin.end();
      const [stdout, stderr, { code }] = await Promise.all([
        text(running.stdout),
        text(running.stderr),
        running.exited,
      ]);
      return { code, stdout, stderr };
    };
    return {
      world,
      name,
      id: session.id,
      warnings: planned.warnings,
      furnished,
      shell: (script, more) => run(["sh", "-c", script], more),
      python: (script) => run(["python3", "-c", script]),
      inspect: () => world.inspect(name),
      async [Symbol.asyncDispose]() {
        await session[Symbol.asyncDispose]();
        // The engine removes what is left by itself, a little later; it is not to be surprised by its own end.
        for (let tries = 0; tries < 100 && world.containers().length > 0; tries++) await sleep(50);
        world.remove();
      },
    };
  } catch (error) {
    world.remove();
    throw error;
  }
}
