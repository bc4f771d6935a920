import { appendFileSync, existsSync, readdirSync, rmdirSync, writeFileSync } from "node:fs";
import { homedir, userInfo } from "node:os";
import { join } from "node:path";
import { listIfThere, readIfThere } from "./read.ts";

const noteName = "missing";

/** Notes in a run's directory which of the shared directories the machine does not have yet. */
export function noteMissing(directory: string): void {
  const missing = sharedDirectories().filter((path) => !existsSync(path));
  writeFileSync(join(directory, noteName), `${missing.join("\n")}\n`);
}

/** Removes those directories again, as far as they hold no files and no processes. The last of several runs does it. */
export function removeNoted(directory: string, others: readonly string[]): void {
  const noted = readIfThere(join(directory, noteName));
  const [heir] = others;
  if (heir !== undefined) appendFileSync(join(heir, noteName), noted);
  else for (const path of noted.split("\n").filter((line) => line.startsWith("/"))) removeEmptyTree(path);
}

/**
 * Directories that Podbot, the engines and the agents create for a user if they are missing, and keep. On a machine
 * that never ran them, a run of the tests is the first to do so.
 */
function sharedDirectories(): readonly string[] {
  const homes = [...new Set([homedir(), userInfo().homedir])];
  const names = [".cache", ".config", ".local", ".local/share", ".local/state"];
  const hierarchies = ["/sys/fs/cgroup", ...listIfThere("/sys/fs/cgroup").map((name) => join("/sys/fs/cgroup", name))];
  return [
    ...homes.flatMap((home) => names.flatMap((name) => ["", "opencode", "podbot"].map((own) => join(home, name, own)))),
    ...hierarchies.map((path) => join(path, "libpod_parent")),
  ];
}

/** A cgroup counts as empty if it has neither processes nor cgroups below it. */
function removeEmptyTree(path: string): void {
  try {
    for (const entry of readdirSync(path, { withFileTypes: true }))
      if (entry.isDirectory()) removeEmptyTree(join(path, entry.name));
    rmdirSync(path);
  } catch {
    // It is gone already, or something in it is in use: `.ci/run` reports what is left.
  }
}
