import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { adapterOf } from "../../../src/agents/adapter.ts";
import { agents } from "../../../src/agents/table.ts";

/** The image with all agents that take real turns. */
export const agentImageName = "localhost/podbot-e2e-agents:latest";
export const agentNames = ["claude", "codex", "opencode", "goose"];

/** A smaller image for rootless engines: enough agents to show where these engines differ. */
export const someAgentsImageName = "localhost/podbot-e2e-some-agents:latest";
export const someAgentsNames = ["claude", "codex"];

const root = join(import.meta.dirname, "../../..");
const cache = join(root, ".make/e2e");

/**
 * The archive with both images, kept across runs. Its name contains a hash of its inputs, so a change of these builds a
 * new one. Null if there is none yet.
 */
export function keptArchive(): string | null {
  const path = pathOfArchive();
  return existsSync(path) ? path : null;
}

/** Returns the archive, and calls `write` to make it if it is missing. */
export async function keepArchive(write: (path: string) => Promise<void>): Promise<string> {
  const path = pathOfArchive();
  mkdirSync(cache, { recursive: true });
  const release = await lock(join(cache, "agents.lock"));
  try {
    if (existsSync(path)) return path;
    for (const name of readdirSync(cache)) if (/^agents-.*\.tar/.test(name)) rmSync(join(cache, name));
    await write(`${path}.part`);
    renameSync(`${path}.part`, path);
    return path;
  } finally {
    await release();
  }
}

function pathOfArchive(): string {
  return join(cache, `agents-${key()}.tar`);
}

/** A hash of what they are made of: the text and its files, the program that puts it together, the agents' versions. */
function key(): string {
  const hash = createHash("sha256").update(JSON.stringify([agentNames, someAgentsNames]));
  for (const agent of agents)
    if (agentNames.includes(agent.name)) hash.update(JSON.stringify([agent.package, adapterOf(agent)]));
  for (const directory of ["image", "src/image"]) {
    const paths = readdirSync(join(root, directory), { recursive: true, encoding: "utf8" }).sort();
    for (const path of paths.map((name) => join(root, directory, name))) {
      if (statSync(path).isFile()) hash.update(`${path.slice(root.length)}\0`).update(readFileSync(path));
    }
  }
  return hash.digest("hex").slice(0, 16);
}

/** Keeps two runs of this checkout from building the same archive at once. The lock ends with this process. */
async function lock(path: string): Promise<() => Promise<void>> {
  const holder = spawn("flock", [path, "sh", "-c", "echo held; cat"], { stdio: ["pipe", "pipe", "inherit"] });
  const exited = once(holder, "exit");
  await Promise.race([
    once(holder.stdout, "data"),
    exited.then(([status]) => {
      throw new Error(`flock ${path} ended with ${status}`);
    }),
  ]);
  return async () => {
    holder.stdin.end();
    await exited;
  };
}
