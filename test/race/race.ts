import { type ChildProcess, execFileSync } from "node:child_process";
import { closeSync, existsSync, lstatSync, mkdirSync, openSync, readdirSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { eventually } from "../eventually.ts";
import type { Outcome, World } from "../world.ts";

/**
 * Everything below the project by which a wall touches the file system, by the kind of operation. An agent whose own
 * working directory is the one around the project may exchange all of it.
 */
const kinds = {
  "a file that is bound": [".mcp.json", "notes.txt", ".git/config", ".git/modules/m/config"],
  "a directory that is bound": ["vendor", ".vscode", ".git/hooks", ".git/modules/m/hooks"],
  "a file that is covered": [".env"],
  "a directory that is covered": ["private"],
  "a file that is made and removed": [".git/config.worktree", ".git/commondir"],
  "a directory that is made and removed": [".podbot"],
  "a directory on the way to others": ["", ".git", ".git/modules/m"],
} as const;

const raced = Object.values(kinds).flat();

const rules = ["--exclude", ".env", "--exclude", "private", "--ro", "vendor", "--ro", "notes.txt"];

interface Race extends Disposable {
  /** Which of the names is exchanged, counted from 1; 0 for none. */
  turn(name: number): void;
  /** Starts a box in the project, whose command tries the victim itself. */
  start(): Promise<Outcome>;
  /** All that belongs to the owner elsewhere: names, kinds, modes, inodes, sizes, times and contents. */
  victim(): string;
}

/** An agent that races in the directory around a project, and the owner who starts another box in the project. */
async function beginRace(world: World, flags: readonly string[]): Promise<Race> {
  const work = join(world.home, "work");
  const victim = join(world.home, "victim");
  world.file("home/victim/file", "precious\n", 0o600);
  world.file("home/victim/config", "");
  world.file("home/victim/config.worktree", "");
  world.file("home/victim/commondir", ".\n");
  for (const name of ["hooks", ".podbot", "m"]) mkdirSync(join(victim, name));
  const project = prepareProject(world);
  const source = join(import.meta.dirname, "racer.c");
  execFileSync("cc", ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-static", "-o", join(work, "racer"), source]);
  const names = raced.map((name) => join("project", name));
  const words = ["sandbox", "--network", "none", "--quiet", "--", "./racer", victim, ...names];
  const agent = world.spawn(words, { cwd: work, stdio: ["ignore", "pipe", "inherit"] });
  await saysReady(agent);
  // As the program itself finds out where its caller stands.
  const { dev, ino } = lstatSync(project);
  const standing = { cwd: project, cwdIdentity: `${dev}:${ino}` };
  const turns = openSync(join(work, "turn"), "r+");
  const script = `/usr/bin/id -u; (echo x > ${victim}/file) 2>/dev/null; mkdir ${victim}/new 2>/dev/null; true`;
  return {
    turn: (name) => void writeSync(turns, Buffer.from([name]), 0, 1, 0),
    start: () => world.podbot(["sandbox", "--network", "none", ...flags, ...rules, "--", "sh", "-c", script], standing),
    victim: () => describe(victim),
    [Symbol.dispose]() {
      closeSync(turns);
      agent.kill("SIGKILL");
    },
  };
}

function prepareProject(world: World): string {
  const project = join(world.home, "work", "project");
  for (const name of [".mcp.json", ".env", "private/key", "vendor/code", "notes.txt", ".vscode/settings.json"]) {
    world.file(`home/work/project/${name}`, "{}\n");
  }
  execFileSync("git", ["init", "-q", "-b", "main", "."], { cwd: project, env: world.env as NodeJS.ProcessEnv });
  execFileSync("git", ["init", "-q", "--bare", ".git/modules/m"], {
    cwd: project,
    env: world.env as NodeJS.ProcessEnv,
  });
  return project;
}

async function saysReady(agent: ChildProcess): Promise<void> {
  for await (const text of agent.stdout ?? []) if (String(text).includes("ready")) return;
  throw new Error("The racer has not begun.");
}

function describe(directory: string): string {
  const lines = readdirSync(directory, { recursive: true, encoding: "utf8" }).sort();
  return ["", ...lines]
    .map((name) => {
      const path = join(directory, name);
      const { mode, ino, size, mtimeNs } = lstatSync(path, { bigint: true });
      const content = lstatSync(path).isFile() ? readFileSync(path, "utf8") : "";
      return [name, mode, ino, size, mtimeNs, JSON.stringify(content)].join(" ");
    })
    .join("\n");
}

/** Starts that many boxes for each kind of operation. In the end, without a race, a box starts as ever. */
export async function raceForEachKind(world: World, starts: number, flags: readonly string[] = []): Promise<void> {
  using race = await beginRace(world, flags);
  const before = race.victim();
  const ended = { asPlanned: 0, notAtAll: 0 };
  for (const [kind, names] of Object.entries(kinds)) {
    for (let start = 0; start < starts; start++) {
      const name = names[start % names.length] as (typeof raced)[number];
      race.turn(raced.indexOf(name) + 1);
      const outcome = await race.start();
      ended[outcome.status === 0 ? "asPlanned" : "notAtAll"]++;
      const seen = { kind, name, surprise: surprise(outcome), victim: race.victim() };
      expect(seen).toEqual({ kind, name, surprise: null, victim: before });
    }
  }
  expect(Math.min(ended.asPlanned, ended.notAtAll)).toBeGreaterThan(0);
  race.turn(0);
  await eventually(async () => expect(await race.start()).toMatchObject({ status: 0 }));
}

/** The way that a start ended, if it is none that the owner may meet: as planned, or not at all. */
function surprise({ status, stdout, stderr }: Outcome): string | null {
  if (existsSync("/oldroot") || existsSync("/newroot")) return "a place of bubblewrap's is on the host";
  if (status === 0) return /^\d+\n$/.test(stdout) ? null : `printed ${JSON.stringify(stdout)}`;
  if (stdout !== "") return `printed ${JSON.stringify(stdout)}, and ended with ${status}`;
  return /\([A-Z_]+; docs/.test(stderr) ? null : `ended with ${status}: ${stderr}`;
}
