import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { onTestFinished } from "vitest";
import { type AgentRequest, planAgent } from "../../src/keeper/agent.ts";
import { startSession } from "../../src/keeper/kept-session.ts";
import type { Session, SessionOptions } from "../../src/keeper/session.ts";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";
import { appKey, Town, type TownOptions } from "../github/town.ts";
import { newWorld, type Outcome, type World } from "../world.ts";

/** A world whose owner has a GitHub App, and the town that it is known in. */
export interface Settled {
  readonly world: World;
  readonly town: Town;
}

export async function settle(options: TownOptions = {}, more: readonly string[] = []): Promise<Settled> {
  const town = await Town.open(options);
  onTestFinished(() => town[Symbol.asyncDispose]());
  const world = newWorld();
  const privateKeyPath = world.file("home/.config/podbot/keys/app.pem", appKey, 0o600);
  world.file("home/.config/podbot/config.toml", configOf({ app: { ...town.app, privateKeyPath } }, more));
  return { world, town };
}

/** Makes the caller's directory a repository whose remote is at this address. */
export function cloneOf({ project, env }: Pick<World, "project" | "env">, address: string): void {
  const git = (...words: string[]) => spawnSync("git", words, { cwd: project, env: env as NodeJS.ProcessEnv });
  git("init", "-q");
  git("remote", "add", "origin", address);
}

export function configOf({ app }: Pick<Town, "app">, more: readonly string[] = []): string {
  return [
    "[github]",
    `app_id = ${app.appId}`,
    `installation_id = ${app.installationId}`,
    `private_key_path = "${app.privateKeyPath}"`,
    `api_url = "${app.apiUrl}"`,
    ...more,
    "",
  ].join("\n");
}

export const repository = ["--repo", "example/name", "--branch", "main"];

/** A script of an agent on a clone. */
export function inClone(world: World, script: string, ...flags: string[]): Promise<Outcome> {
  return world.podbot(["run", ...repository, ...flags, "--agent", "custom", "--", "sh", "-c", script]);
}

/** What is left of sessions: nothing may be. */
export function leftovers({ home, directory }: World): readonly string[] {
  const places = [join(home, ".local/state/podbot/sessions"), join(directory, "run/podbot")];
  return places.flatMap((place) => (existsSync(place) ? readdirSync(place) : [])).filter((name) => name !== "engines");
}

/** A session that lasts until the test is over, with a clone in it unless the request says otherwise. */
export async function openClone(
  world: World,
  request: Partial<AgentRequest> = {},
  options: SessionOptions = {},
): Promise<Session> {
  const planned = await planAgent({
    cwd: world.project,
    env: world.env,
    agent: "custom",
    args: ["sleep", "1000"],
    repository: "example/name",
    branch: "main",
    ...request,
  });
  const session = await startSession(planned, options);
  onTestFinished(() => session[Symbol.asyncDispose]());
  return session;
}

/** A shell script in a session. */
export async function say(sandbox: Sandbox, script: string): Promise<Outcome> {
  const process = await sandbox.exec({ argv: ["sh", "-c", script] });
  process.stdin.end();
  const [stdout, stderr, { code }] = await Promise.all([text(process.stdout), text(process.stderr), process.exited]);
  return { status: code, stdout, stderr };
}

/** Where any of these values stands: arguments and environments of all processes, and files below these directories. */
export function findValues(values: readonly string[], directories: readonly string[]): readonly string[] {
  const processes = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  const files = [
    ...processes.flatMap((pid) => [`/proc/${pid}/cmdline`, `/proc/${pid}/environ`]),
    ...directories.flatMap((directory) =>
      readdirSync(directory, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name)),
    ),
  ];
  return files.filter((file) => values.some((value) => bytesOf(file).includes(value)));
}

/** What is gone by now, or another user's, holds nothing that could be seen. */
function bytesOf(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch {
    return Buffer.alloc(0);
  }
}
