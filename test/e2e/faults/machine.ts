import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { userInfo } from "node:os";
import { basename, join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, expect } from "vitest";
import { ownerName } from "../../../src/keeper/engine.ts";
import { eventually, until } from "../../eventually.ts";
import { expectWhole, kill, type Listed, listing, namesIn, type Process, type Running } from "../../faults/machine.ts";
import { program, World } from "../../world.ts";
import { call } from "../engines/api.ts";
import { networkWords, type TestEngine } from "../engines/engine.ts";

/** The variable by which the processes of a place are found. */
const mark = "FAULTS_WORLD";

/** What `ps` says of a container whose keeper is gone. A busy engine may not answer within the time that `ps` waits. */
export const stillThere = /still( be)? there/;

export interface Container {
  readonly name: string;
  readonly state: string;
}

/** A container as the engine lists it. */
interface Found {
  readonly Id: string;
  readonly Names: readonly string[];
  readonly State: string;
}

/** A world whose sessions run in an engine's containers. Its processes and containers are found by its name. */
export class EnginePlace {
  readonly world = new World();
  readonly engine: TestEngine;
  /** Where Podbot finds the engine. */
  readonly socket: string;
  readonly state = join(this.world.home, ".local/state/podbot");
  readonly sessions = join(this.state, "sessions");
  readonly runtime = join(this.world.directory, "run", "podbot");
  /** Whether nothing was started here since `expectClean`. */
  isClean = true;
  readonly #held = join(userInfo().homedir, ".local/state/podbot/held");

  constructor(engine: TestEngine, socket?: (world: World) => string) {
    this.engine = engine;
    this.socket = socket?.(this.world) ?? engine.socket;
    Object.assign(this.world.env, { [mark]: this.world.directory }, networkWords(engine));
    this.world.repository();
    const settings = `image = ${JSON.stringify(engine.image)}\nengine_socket = ${JSON.stringify(this.socket)}\n`;
    this.world.file("home/.config/podbot/config.toml", settings);
    places.push(this);
  }

  spawn(words: readonly string[], cwd: string = this.world.project): Running {
    this.isClean = false;
    const [file = "", ...args] = words;
    const child = spawn(file, args, {
      cwd,
      env: this.world.env as NodeJS.ProcessEnv,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const exited = once(child, "exit");
    const done = Promise.all([text(child.stdout), text(child.stderr), exited]).then(
      ([stdout, stderr, [code, signal]]) => ({ status: (code as number | null) ?? -1, signal, stdout, stderr }),
    );
    return { child, exited, done };
  }

  start(...words: string[]): Running {
    return this.spawn([process.execPath, program, ...words]);
  }

  podbot(...words: string[]): Running["done"] {
    return this.start(...words).done;
  }

  /** Starts a session with a keeper of its own, and returns its id. */
  async detach(...command: string[]): Promise<string> {
    const words = ["run", "--quiet", "--detach", "--agent", "custom", "--"];
    const { status, stdout, stderr } = await this.podbot(...words, ...command);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    return stdout.trim();
  }

  async ps(): Promise<readonly Listed[]> {
    const { status, stdout, stderr } = await this.podbot("ps", "--json");
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    return JSON.parse(stdout);
  }

  /** Asks the engine itself for this place's containers, including those that have ended or never ran. */
  async containers(): Promise<readonly Container[]> {
    // Podman's listing fails if a container disappears meanwhile.
    return await eventually(() => this.#listContainers());
  }

  async #listContainers(): Promise<readonly Container[]> {
    const filters = JSON.stringify({ label: [`podbot.owner=${ownerName(this.state)}`] });
    const path = `/v1.40/containers/json?all=true&filters=${encodeURIComponent(filters)}`;
    const answer = await call(this.engine.socket, "GET", path);
    expect(answer).toMatchObject({ status: 200 });
    const found = JSON.parse(answer.body) as readonly Found[];
    const known = await Promise.all(found.map(async (one) => ((await this.#isKnown(one)) ? [one] : [])));
    return known.flat().map(({ Names, State }) => ({ name: Names[0]?.replace(/^\//, "") ?? "", state: State }));
  }

  /**
   * Docker 20.10 ends the containers that it finds when it restarts and removes them. Sometimes it goes on listing one
   * of them until its next restart, without a name, and answers 404 to everything that is asked about it.
   */
  async #isKnown({ Id, Names }: Found): Promise<boolean> {
    if (Names.length > 0) return true;
    const { status } = await call(this.engine.socket, "GET", `/v1.40/containers/${Id}/json`);
    return status !== 404;
  }

  /** Commands that were started in this world, and processes in containers that mount something of it. */
  processes(): readonly Process[] {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .flatMap((name) => this.#processOf(Number(name)) ?? []);
  }

  #processOf(pid: number): Process | null {
    const read = (file: string) => {
      try {
        return readFileSync(`/proc/${pid}/${file}`, "utf8");
      } catch {
        return "";
      }
    };
    const isOurs =
      read("environ").split("\0").includes(`${mark}=${this.world.directory}`) ||
      // It mounts something of this world. A mount point in it is not enough: other sandboxes cover our sockets.
      (!sharesMounts(pid) &&
        read("mountinfo")
          .split("\n")
          .some((line) => line.split(" ")[3]?.includes(`/${basename(this.world.directory)}/`)));
    if (!isOurs) return null;
    const stat = read("stat");
    const [state = "", parent = ""] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (stat === "" || state === "Z") return null;
    return { pid, parent: Number(parent), state, argv: read("cmdline").split("\0").slice(0, -1) };
  }

  /** The sessions that have a runtime directory. `engines`, where Podbot remembers engines, may stay beside them. */
  directories(): readonly string[] {
    return namesIn(this.runtime).filter((name) => name !== "engines");
  }

  /** The processes of `podbot COMMAND`, without forks of theirs that have not executed another program yet. */
  commands(command: string): readonly Process[] {
    const named = this.processes().filter((process) => isPodbot(process, command));
    return named.filter(({ parent }) => !named.some(({ pid }) => pid === parent));
  }

  /** The sessions whose warden lives. */
  boxes(): readonly string[] {
    const all = this.processes();
    return all.filter((one) => isWarden(one, all)).map(({ argv }) => idOf(argv));
  }

  /** Claims on names that lie in this world: they are kept where every Podbot of this user finds them. */
  claims(): readonly string[] {
    return namesIn(this.#held).filter((name) => {
      try {
        return readFileSync(join(this.#held, name), "utf8").includes(`${this.world.directory}/`);
      } catch {
        return false;
      }
    });
  }

  /** Ends what a failed test has left. It does not wait for the engine, which may have ended with its own tests. */
  async clear(): Promise<void> {
    if (!this.isClean) await this.#end();
    rmSync(this.world.directory, { recursive: true, force: true, maxRetries: 5 });
  }

  async #end(): Promise<void> {
    for (const { name } of await this.#listContainers().catch(() => [])) {
      await call(this.engine.socket, "DELETE", `/v1.40/containers/${name}?force=true`).catch(() => {});
    }
    for (const { pid } of this.processes()) kill(pid);
  }
}

/** A process in our own mount namespace is in no container. False where the namespace cannot be read. */
function sharesMounts(pid: number): boolean {
  try {
    return readlinkSync(`/proc/${pid}/ns/mnt`) === ownMounts;
  } catch {
    return false;
  }
}

const ownMounts = readlinkSync("/proc/self/ns/mnt");

const places: EnginePlace[] = [];

afterAll(async () => {
  await Promise.all(places.map((place) => place.clear()));
});

export function isPodbot({ argv }: Process, command: string): boolean {
  return argv[1] === program && argv[2] === command;
}

/** The first process of a container. Its attendants have the same name, and are its children. */
export function isWarden({ argv, parent }: Process, all: readonly Process[]): boolean {
  return argv[0] === wardenName && all.find(({ pid }) => pid === parent)?.argv[0] !== wardenName;
}

export const wardenName = "/run/podbot/warden";

/** The id of the session that a warden was started for. */
function idOf(argv: readonly string[]): string {
  return /\/in\/([a-z0-9]+)\.sock$/.exec(argv[1] ?? "")?.[1] ?? "";
}

/** Waits until every process of the place has ended, then lists those that have not. */
export async function expectNobody(place: EnginePlace): Promise<void> {
  await until("everybody ends", () => place.processes().length === 0).catch(() => {});
  expect(place.processes()).toEqual([]);
}

/** What must be true after `podbot stop --all`, whatever happened before. */
export async function expectClean(place: EnginePlace, workspace: readonly string[]): Promise<void> {
  const { world, sessions } = place;
  expect(await place.ps()).toEqual([]);
  await expectNobody(place);
  // The engine removes a container a moment after it was asked to, or after it ended.
  await eventually(async () => expect(await place.containers()).toEqual([]));
  expect(place.directories()).toEqual([]);
  expect(namesIn(sessions)).toEqual([]);
  expect(place.claims()).toEqual([]);
  expect(mountsOf(world)).toEqual([]);
  expectWhole(world, world.project, workspace);
  place.isClean = true;
}

function mountsOf({ directory }: World): readonly string[] {
  return readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .filter((line) => line.includes(directory));
}

/** `podbot stop --all` succeeds and leaves nothing. */
export async function stopAll(place: EnginePlace, workspace: readonly string[]): Promise<void> {
  const { status, stderr } = await place.podbot("stop", "--all", "--time", "1");
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  await expectClean(place, workspace);
  // Podbot forgets the engine, so that no later command asks it in vain. An engine that was too busy to answer the first
  // command is forgotten by a later one.
  await eventually(async () => {
    if (namesIn(join(place.state, "engines")).length > 0) await place.podbot("stop", "--all");
    expect(namesIn(join(place.state, "engines"))).toEqual([]);
  });
}

/** A new place, and what its workspace contains before the test. */
export function newPlace(engine: TestEngine, socket?: (world: World) => string) {
  const place = new EnginePlace(engine, socket);
  return { place, before: listing(place.world.project) };
}
