import { type ChildProcess, execFileSync } from "node:child_process";
import { closeSync, existsSync, lstatSync, mkdirSync, openSync, readdirSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Outcome, World } from "../world.ts";

/**
 * Everything below the project by which a wall touches the file system. An agent whose own working directory is the one
 * around the project may exchange all of it.
 */
export const raced = [
  "", // the project itself
  ".mcp.json", // a file that is bound read-only
  "vendor", // a directory that is bound read-only
  "notes.txt",
  ".env", // a file that is covered
  "private", // a directory that is covered
  ".podbot", // a placeholder that is a directory
  ".git", // a directory that is held where it is
  ".git/config",
  ".git/hooks",
  ".git/config.worktree", // a placeholder that is a file
  ".git/commondir",
  ".git/modules/m", // directories around placeholders
  ".git/modules/m/config",
  ".git/modules/m/hooks",
  ".vscode",
] as const;

/** A link to a name that does not exist, as the racer counts its spares: see racer.c. */
export const danglingLink = 3;

const flags = ["--exclude", ".env", "--exclude", "private", "--ro", "vendor", "--ro", "notes.txt"];

export interface Race extends Disposable {
  /** Which of the names is exchanged, counted from 1 (0: none), and for which spare, likewise (0: any). */
  turn(name: number, spare: number): void;
  /** Starts a box in the project, whose command tries the victim itself. */
  start(): Promise<Outcome>;
  /** All that belongs to the owner elsewhere: names, kinds, modes, inodes, sizes, times and contents. */
  victim(): string;
}

/** An agent that races in the directory around a project, and the owner who starts another box in the project. */
export async function beginRace(world: World, racer: string): Promise<Race> {
  const work = join(world.home, "work");
  const victim = join(world.home, "victim");
  world.file("home/victim/file", "precious\n", 0o600);
  world.file("home/victim/config", "");
  world.file("home/victim/config.worktree", "");
  world.file("home/victim/commondir", ".\n");
  for (const name of ["hooks", ".podbot", "m"]) mkdirSync(join(victim, name));
  const project = prepareProject(world);
  execFileSync("cp", [racer, join(work, "racer")]);
  const names = raced.map((name) => join("project", name));
  const words = ["sandbox", "--network", "none", "--quiet", "--", "./racer", victim, ...names];
  const agent = world.spawn(words, { cwd: work, stdio: ["ignore", "pipe", "inherit"] });
  await saysReady(agent);
  const turns = openSync(join(work, "turn"), "r+");
  const script = `/usr/bin/id -u; (echo x > ${victim}/file) 2>/dev/null; mkdir ${victim}/new 2>/dev/null; true`;
  return {
    turn: (name, spare) => void writeSync(turns, Buffer.from([name, spare]), 0, 2, 0),
    start: () => world.podbot(["sandbox", "--network", "none", ...flags, "--", "sh", "-c", script], { cwd: project }),
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

/** The way that a start ended, if it is none that the owner may meet: as planned, or not at all. */
export function surprise({ status, stdout, stderr }: Outcome): string | null {
  if (existsSync("/oldroot") || existsSync("/newroot")) return "a place of bubblewrap's is on the host";
  if (status === 0) return stdout === `${process.getuid?.()}\n` ? null : `printed ${JSON.stringify(stdout)}`;
  if (stdout !== "") return `printed ${JSON.stringify(stdout)}, and ended with ${status}`;
  const codes = /\((PATH_CHANGED|PATH_REFUSED|WALL_FAILED|CONFIG_[A-Z]+|[A-Z_]+); docs/.exec(stderr);
  return codes === null ? `ended with ${status}: ${stderr}` : null;
}
