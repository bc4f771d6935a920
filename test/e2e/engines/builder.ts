import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { unfrozen } from "../../suite/soak/stall.ts";
import {
  agentImageName,
  agentNames,
  keepArchive,
  keptArchive,
  someAgentsImageName,
  someAgentsNames,
} from "./agent-archive.ts";
import { base, execute } from "./execute.ts";
import type { EngineRecord } from "./record.ts";

/** What came of a build. */
interface Said {
  readonly stdout: string;
  readonly stderr: string;
}

/** The first build of a run, which begins with nothing, and the engine that it was made in. */
export interface FirstBuild extends Said {
  readonly engine: EngineRecord;
}

/** Where an engine finds an image for agents. */
export interface AgentImage {
  readonly name: string;
  /** The store that has it. */
  readonly store: string;
}

const firstImageName = "localhost/podbot-e2e-first:latest";
const program = join(import.meta.dirname, "../../../dist/podbot.cjs");

/** Builds all images of a run in one engine, so that shared layers are built once. Other engines read its store. */
export class Builder {
  readonly #start: () => Promise<EngineRecord>;
  readonly #ending = new AbortController();
  readonly #shared = new Map<string, Promise<unknown>>();

  constructor(start: () => Promise<EngineRecord>) {
    this.#start = start;
  }

  /** A root of Debian, its packages and npm: all that every image begins with. */
  first(): Promise<FirstBuild> {
    return this.#share("first", async () => ({
      ...(await this.#build([], firstImageName)),
      engine: await this.#engine(),
    }));
  }

  /** Root's engines read the builder's store. A rootless engine needs its own copy, because it must own the files. */
  async agentImage(engine: EngineRecord): Promise<AgentImage> {
    if (engine.caller.uid === 0) {
      await this.#agents();
      return { name: agentImageName, store: storeOf(await this.#engine()) };
    }
    const source = `docker-archive:${await this.#archive()}:${someAgentsImageName}`;
    await this.#share(engine.service, () => podman(engine, ["pull", "--quiet", source]));
    return { name: someAgentsImageName, store: storeOf(engine) };
  }

  /** Ends what is being built. */
  async end(): Promise<void> {
    this.#ending.abort();
    await Promise.allSettled(this.#shared.values());
  }

  /** The images for agents, in the builder's engine. */
  #agents(): Promise<void> {
    return this.#share("agents", async () => {
      const own = await this.#engine();
      const kept = keptArchive();
      if (kept !== null) return void (await podman(own, ["load", "--quiet", "--input", kept]));
      await this.first();
      await this.#build(agentNames, agentImageName);
      // This image shares its first layers with the one above.
      await this.#build(someAgentsNames, someAgentsImageName);
      // Rootless engines and the next run load the archive.
      this.#archive().catch(() => {});
    });
  }

  /** The archive of both agent images. */
  #archive(): Promise<string> {
    return this.#share("archive", () =>
      keepArchive(async (path) => {
        await this.#agents();
        const images = [agentImageName, someAgentsImageName];
        const words = ["save", "--quiet", "--multi-image-archive", "--output", path, ...images];
        await podman(await this.#engine(), words);
      }),
    );
  }

  #engine(): Promise<EngineRecord> {
    return this.#share("engine", this.#start);
  }

  /** Runs `make` once and shares its promise. A failure is forgotten, so the next caller tries again. */
  #share<T>(what: string, make: () => Promise<T>): Promise<T> {
    const known = this.#shared.get(what) as Promise<T> | undefined;
    if (known !== undefined) return known;
    const made = make();
    this.#shared.set(what, made);
    made.catch(() => this.#shared.delete(what));
    return made;
  }

  /** Builds through `podbot image build`, as users do. */
  async #build(agents: readonly string[], tag: string): Promise<Said> {
    const { env, socket } = await this.#engine();
    const wanted = ["--agents", agents.join(",") || "none", "--base", "debian", "--tag", tag];
    const words = ["image", "build", ...wanted, "--host-network", "--engine-socket", socket];
    // mmdebstrap's mmtarfilter loses data when the freezer interrupts it.
    const [first = "", ...rest] = [...unfrozen(), process.execPath, program, ...words];
    return await promisify(execFile)(first, rest, {
      cwd: "/",
      // Programs of the image that is being built cannot load what a soak preloads.
      env: { ...base, ...process.env, ...env, LD_PRELOAD: undefined },
      signal: this.#ending.signal,
      // As long as the hooks of the tests wait for it. The next caller tries again.
      timeout: 600_000,
    });
  }
}

function podman({ env, caller: { uid, gid, home } }: EngineRecord, words: readonly string[]): Promise<string> {
  return execute(["podman", ...words], { env: { ...env, HOME: home }, uid, gid });
}

function storeOf({ env }: EngineRecord): string {
  return (env["CONTAINERS_STORAGE_CONF"] ?? "").replace(/storage\.conf$/, "graph");
}
