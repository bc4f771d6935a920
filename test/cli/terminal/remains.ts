import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { eventually } from "../../eventually.ts";
import { newWorld, program, type World } from "../../world.ts";

/** A world for one test, after which nothing of its sessions is left. */
export function sessionWorld(): World {
  const world = newWorld();
  onTestFinished(async () => {
    await world.podbot(["stop", "--all", "--time", "1ms"]);
    await expectNothingLeft(world);
  });
  return world;
}

/** Processes of a world, by their environment or their words, but for the shells of its terminals. */
export function processesOf(world: World): readonly string[] {
  const words = [world.directory, ...sessionsOf(world).map((id) => `/run/podbot/in/${id}.sock`)];
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      const command = read(`/proc/${pid}/cmdline`);
      if (command === "bash\0--norc\0--noprofile\0" || command.startsWith("tmux")) return [];
      const about = command + read(`/proc/${pid}/environ`);
      return words.some((word) => about.includes(word)) ? [`${pid} ${command.replaceAll("\0", " ")}`] : [];
    });
}

/** Ids of all sessions that have left anything on the disk. */
export function sessionsOf(world: World): readonly string[] {
  const places = [join(world.home, ".local/state/podbot/sessions"), join(world.directory, "run/podbot")];
  return [...new Set(places.flatMap(list))];
}

/** No process, no runtime directory, no record. */
export async function expectNothingLeft(world: World): Promise<void> {
  await eventually(() => {
    expect(sessionsOf(world)).toEqual([]);
    expect(processesOf(world)).toEqual([]);
  });
}

/** A session that waits to be given something to do; its id. */
export function startIdle(world: World, ...flags: string[]): string {
  return startDetached(world, ["sh", "-c", "while :; do sleep 1; done"], ...flags);
}

export function startDetached(world: World, command: readonly string[], ...flags: string[]): string {
  const words = [program, "run", "--detach", "--quiet", "--agent", "custom", ...flags, "--", ...command];
  const { status, stdout, stderr } = spawnSync(process.execPath, words, {
    cwd: world.project,
    env: world.env as NodeJS.ProcessEnv,
    encoding: "utf8",
  });
  expect(stderr).toBe("");
  expect(status).toBe(0);
  expect(stdout).toMatch(/^[a-z0-9]{10}\n$/);
  return stdout.trim();
}

function list(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}
