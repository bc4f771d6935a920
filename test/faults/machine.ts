import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { userInfo } from "node:os";
import { join, relative } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, expect } from "vitest";
import { until } from "../eventually.ts";
import { type Outcome, program, World } from "../world.ts";

export interface Options {
  /** Shell commands that make the machine's mounts. `$WORLD` is the world's directory. */
  readonly mounts?: string;
  /** Whether orphans are reaped, as an ordinary init does. Default: true. */
  readonly buries?: boolean;
}

export interface Process {
  /** As seen from here. */
  readonly pid: number;
  readonly parent: number;
  readonly state: string;
  readonly argv: readonly string[];
}

export interface Running {
  readonly child: ChildProcess;
  /** Resolves when it has ended, whoever still holds its output. */
  readonly exited: Promise<unknown>;
  readonly done: Promise<Outcome & { readonly signal: NodeJS.Signals | null }>;
}

const uid = process.getuid?.() ?? -1;
const isRoot = uid === 0;
const runtimeDirectory = `/run/user/${uid}`;

/**
 * A throwaway machine around a world: processes, mounts, /run and the user's claims on held names are its own. `stop
 * --all` means all, and must not reach whatever else this user runs; and whatever is left in it was left by the test.
 */
export class Machine {
  readonly world = new World();
  readonly state = join(this.world.home, ".local/state/podbot");
  readonly sessions = join(this.state, "sessions");
  readonly runtime = join(this.world.directory, "run", "podbot");
  readonly held = join(this.world.directory, "system-state", "held");
  #mounted: readonly string[] = [];
  #holder: ChildProcess | null = null;
  #first = 0;

  static async boot(options: Options = {}): Promise<Machine> {
    const machine = new Machine();
    machines.push(machine);
    await machine.#boot(options);
    return machine;
  }

  async #boot({ mounts = "", buries = true }: Options): Promise<void> {
    const { directory } = this.world;
    const own = join(userInfo().homedir, ".local/state/podbot");
    const script = [
      "set -e",
      "mount -n -t tmpfs -o mode=755 none /run",
      `mkdir -p "${own}" && mount --bind "$WORLD/system-state" "${own}"`,
      // Where a login puts it.
      `mkdir -p ${runtimeDirectory} && mount --bind "$WORLD/run" ${runtimeDirectory}`,
      mounts,
      // A parent that ignores SIGCHLD has no zombies. It goes when its input ends: with the tests, whatever ends them.
      buries ? "trap '' CHLD" : "",
      "echo ready; exec cat",
    ].join("\n");
    mkdirSync(join(directory, "system-state"), { mode: 0o700 });
    this.world.env["XDG_RUNTIME_DIR"] = runtimeDirectory;
    const user = isRoot ? [] : ["--user", "--map-current-user", "--keep-caps"];
    this.#holder = spawn(
      "unshare",
      [...user, "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", script],
      { env: { ...process.env, WORLD: directory }, stdio: ["pipe", "pipe", "inherit"] },
    );
    const { stdout } = this.#holder;
    if (stdout === null) throw new Error("unreachable");
    const [said] = await Promise.race([once(stdout, "data"), once(this.#holder, "exit")]);
    if (String(said) !== "ready\n") throw new Error("the machine does not boot");
    const first = table().find(({ parent }) => parent === this.#holder?.pid);
    if (first === undefined) throw new Error("the machine has no first process");
    this.#first = first.pid;
    this.#mounted = this.#mountTables();
  }

  /** Any program in the machine, as the caller's own user. */
  spawn(words: readonly string[], cwd: string = this.world.project): Running {
    const user = isRoot ? [] : ["--user", "--preserve-credentials"];
    const enter = [
      "--target",
      `${this.#first}`,
      ...user,
      "--mount",
      "--net",
      "--pid",
      "--",
      "sh",
      "-c",
      'cd "$0" && exec "$@"',
    ];
    const child = spawn("nsenter", [...enter, cwd, ...words], {
      env: this.world.env as NodeJS.ProcessEnv,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const said = (stream: NodeJS.ReadableStream | null) => (stream === null ? Promise.resolve("") : text(stream));
    const exited = once(child, "exit");
    const done = Promise.all([said(child.stdout), said(child.stderr), exited]).then(
      ([stdout, stderr, [code, signal]]) => ({ status: (code as number | null) ?? -1, signal, stdout, stderr }),
    );
    return { child, exited, done };
  }

  podbot(...words: string[]): Promise<Outcome> {
    return this.spawn([process.execPath, program, ...words]).done;
  }

  async ps(): Promise<readonly Listed[]> {
    const { status, stdout, stderr } = await this.podbot("ps", "--json");
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    return JSON.parse(stdout);
  }

  /** All that runs in the machine, zombies too, but for its first process; and all below commands started from here. */
  processes(commands: readonly Running[] = []): readonly Process[] {
    return below(this.#first, ...commands.map(({ child }) => child.pid));
  }

  /** What has been mounted on the machine since it was booted, or on ours with the world's name in it. */
  mounts(): readonly string[] {
    return this.#mountTables().filter((line) => !this.#mounted.includes(line));
  }

  #mountTables(): readonly string[] {
    const linesOf = (file: string) => readFileSync(file, "utf8").split("\n");
    const ours = linesOf("/proc/self/mountinfo").filter((line) => line.includes(this.world.directory));
    return [...linesOf(`/proc/${this.#first}/mountinfo`), ...ours];
  }

  /** Its files go after its processes, which the kernel ends in its own time: one that runs could make more files. */
  async shutDown(): Promise<void> {
    this.#holder?.stdin?.end();
    this.#holder?.kill("SIGKILL");
    // The first process of a PID namespace is a zombie only when all others of it have ended.
    await until("the machine's processes end", () => stateOf(this.#first) === null || stateOf(this.#first) === "Z");
    rmSync(this.world.directory, { recursive: true, force: true });
  }
}

export interface Listed {
  readonly id: string;
  readonly state: string;
  readonly why: string | null;
  readonly keeper?: number;
  readonly exit?: { readonly code: number; readonly killed: boolean } | null;
}

const machines: Machine[] = [];

afterAll(async () => {
  const ends = await Promise.allSettled(machines.map((machine) => machine.shutDown()));
  for (const end of ends) if (end.status === "rejected") throw end.reason;
});

function stateOf(pid: number): string | null {
  return table().find((process) => process.pid === pid)?.state ?? null;
}

/** Every process that can be seen from here. */
function table(): readonly Omit<Process, "argv">[] {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "latin1");
      const [state = "", parent = ""] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return [{ pid: Number(name), parent: Number(parent), state }];
    } catch {
      return [];
    }
  });
}

/** The words of some processes; those that have ended meanwhile are left out. */
function withWords(processes: readonly Omit<Process, "argv">[]): readonly Process[] {
  return processes.flatMap((process) => {
    try {
      const argv = readFileSync(`/proc/${process.pid}/cmdline`, "utf8").split("\0").slice(0, -1);
      return [{ ...process, argv }];
    } catch {
      return [];
    }
  });
}

/** The processes below some others, at any depth. */
export function below(...roots: readonly (number | undefined)[]): readonly Process[] {
  const all = table();
  const found = new Set(roots);
  for (let before = 0; before !== found.size; ) {
    before = found.size;
    for (const { pid, parent } of all) if (found.has(parent)) found.add(pid);
  }
  return withWords(all.filter(({ pid }) => found.has(pid) && !roots.includes(pid)));
}

export function kill(pid: number, signal: NodeJS.Signals = "SIGKILL"): boolean {
  // To the kernel, -1 is everybody.
  if (pid <= 0) throw new Error("there is nobody to be killed");
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

/** Bounded, and then says who is left. */
export async function expectNobody(machine: Machine): Promise<void> {
  await until("everybody ends", () => machine.processes().length === 0).catch(() => {});
  expect(machine.processes()).toEqual([]);
}

/**
 * Every name below a directory, with what is there; of git only what a sandbox could have left in it. What another one
 * removes meanwhile, since its holder is dead, is looked for again.
 */
export function listing(directory: string, tries = 5): readonly string[] {
  try {
    return namesBelow(directory);
  } catch (error) {
    if (tries === 0 || (error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return listing(directory, tries - 1);
  }
}

function namesBelow(directory: string): readonly string[] {
  const names = readdirSync(directory, { recursive: true, withFileTypes: true }).map((entry) => {
    const path = join(entry.parentPath, entry.name);
    const kind = entry.isSymbolicLink() ? ` -> ${readlinkSync(path)}` : entry.isDirectory() ? "/" : "";
    return `${relative(directory, path)}${kind}`;
  });
  return names.sort();
}

/** The whole of it: what must be true after `podbot stop --all`, whatever happened before. */
export async function expectClean(machine: Machine, workspace: readonly string[]): Promise<void> {
  const { world, runtime, sessions, held } = machine;
  expect(await machine.ps()).toEqual([]);
  await expectNobody(machine);
  expect(namesIn(runtime)).toEqual([]);
  expect(namesIn(sessions)).toEqual([]);
  expect(namesIn(held)).toEqual([]);
  expect(machine.mounts()).toEqual([]);
  expectWhole(world, world.project, workspace);
}

/** Nothing is missing from a workspace, nothing of Podbot's is left in it, and its repository is sound. */
export function expectWhole({ env }: World, workspace: string, names: readonly string[]): void {
  expect(listing(workspace)).toEqual(names);
  const fsck = spawnSync("git", ["fsck", "--strict"], { cwd: workspace, env: env as NodeJS.ProcessEnv });
  expect(fsck.status).toBe(0);
}

/** One command, and the machine is clean. */
export async function stopAll(machine: Machine, workspace: readonly string[]): Promise<void> {
  const { status, stderr } = await machine.podbot("stop", "--all", "--time", "1");
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  await expectClean(machine, workspace);
}

/** Hidden names too. */
export function namesIn(directory: string): readonly string[] {
  return existsSync(directory) ? readdirSync(directory) : [];
}
