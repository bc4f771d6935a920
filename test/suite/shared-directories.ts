import {
  closeSync,
  constants,
  existsSync,
  openSync,
  readdirSync,
  renameSync,
  rmdirSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { homedir, userInfo } from "node:os";
import { join } from "node:path";
import { listIfThere, readIfThere } from "./read.ts";

const noteName = "missing";

/** Notes in a run's directory which of the shared directories the machine does not have yet. */
export function noteMissing(directory: string): void {
  const missing = sharedDirectories().filter((path) => !existsSync(path));
  writeFileSync(join(directory, noteName), `${missing.join("\n")}\n`);
}

/**
 * Removes the noted directories if they hold no files and no processes. While other runs go on, one of them takes over
 * the list.
 */
export function removeNoted(directory: string, others: readonly string[]): void {
  const closed = join(directory, `${noteName}.closed`);
  try {
    // From here on no other run can hand over its list to this one.
    renameSync(join(directory, noteName), closed);
  } catch {
    // A removal that failed half-way has closed it before.
  }
  const noted = readIfThere(closed);
  if (others.some((heir) => handOver(noted, heir))) return;
  for (const path of noted.split("\n").filter((line) => line.startsWith("/"))) removeEmptyTree(path);
}

/** Fails if that run has just ended. */
function handOver(noted: string, heir: string): boolean {
  try {
    // Without O_CREAT, because a run that ends renames its list first.
    const file = openSync(join(heir, noteName), constants.O_WRONLY | constants.O_APPEND);
    writeSync(file, noted);
    closeSync(file);
    return true;
  } catch {
    return false;
  }
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
