import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { adapterOf } from "../../../src/agents/adapter.ts";
import { agents } from "../../../src/agents/table.ts";
import { execute } from "./execute.ts";
import type { Started } from "./started.ts";

/** What the image for agents is called, whichever engine has it. */
export const agentImageName = "localhost/podbot-e2e-agents:latest";

const names = ["claude", "codex", "opencode", "goose"];
const root = join(import.meta.dirname, "../../..");
const cache = join(root, ".make/e2e");

/**
 * Builds the image once for all runs, by the very command that people use, and keeps it as an archive. Another one is
 * built where what goes into it is another. It is built in an engine of its own, which is gone afterwards.
 */
export async function agentArchive(startPodman: () => Promise<Started>): Promise<string> {
  const path = join(cache, `agents-${key()}.tar`);
  mkdirSync(cache, { recursive: true });
  const release = await lock(join(cache, "agents.lock"));
  try {
    if (existsSync(path)) return path;
    for (const name of readdirSync(cache)) if (/^agents-.*\.tar/.test(name)) rmSync(join(cache, name));
    const started = await startPodman();
    try {
      await build(started, `${path}.part`);
    } finally {
      await started.stop();
    }
    renameSync(`${path}.part`, path);
    return path;
  } finally {
    release();
  }
}

async function build({ engines }: Started, archive: string): Promise<void> {
  const [engine] = engines;
  if (engine === undefined) throw new Error("there is no engine to build with");
  const program = [process.execPath, join(root, "dist/podbot.cjs")];
  const flags = ["--agents", names.join(","), "--base", "debian", "--tag", agentImageName, "--host-network"];
  const env = { ...(process.env as Record<string, string>), ...engine.env };
  await execute([...program, "image", "build", ...flags, "--engine-socket", engine.socket], { env });
  await execute(["podman", "save", "--quiet", "--output", archive, agentImageName], { env });
}

/** A hash of what it is made of: the text and its files, the program that puts it together, the agents' versions. */
function key(): string {
  const hash = createHash("sha256").update(JSON.stringify(names));
  for (const agent of agents)
    if (names.includes(agent.name)) hash.update(JSON.stringify([agent.package, adapterOf(agent)]));
  for (const directory of ["image", "src/image"]) {
    const paths = readdirSync(join(root, directory), { recursive: true, encoding: "utf8" }).sort();
    for (const path of paths.map((name) => join(root, directory, name))) {
      if (statSync(path).isFile()) hash.update(`${path.slice(root.length)}\0`).update(readFileSync(path));
    }
  }
  return hash.digest("hex").slice(0, 16);
}

/** Another run of this checkout may be about to build the same. */
async function lock(path: string): Promise<() => void> {
  for (const end = Date.now() + 600_000; Date.now() < end; await sleep(500)) {
    try {
      mkdirSync(path);
      return () => rmSync(path, { recursive: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      // One that was killed has left it.
      if (Date.now() - statSync(path).mtimeMs > 600_000) rmSync(path, { recursive: true, force: true });
    }
  }
  throw new Error(`${path} is held by another run`);
}
