import { lstatSync, mkdirSync, readlinkSync, symlinkSync, unlinkSync } from "node:fs";
import { dirname } from "node:path";
import { FilesystemError } from "../errors.ts";
import { isRunning, type OwnMark } from "./process.ts";

/** How long anybody may have the lock: what is done under it takes milliseconds. */
const patienceMs = 10_000;
const pauseMs = 2;

/**
 * Does something that no other Podbot of this user does at the same time. Node has no lock that the kernel releases when
 * its holder dies. So the lock is a symbolic link whose target names the holder, because a link appears together with
 * its target. A process that finds a dead holder removes the link, and only one process at a time may do so.
 */
export function withLock<T>(path: string, mine: OwnMark, work: () => T): T {
  wait(path, () => take(path, mine) || steal(path, mine));
  try {
    return work();
  } finally {
    remove(path);
  }
}

function take(path: string, { pid, started, space }: OwnMark): boolean {
  try {
    symlinkSync(`${pid} ${started} ${space}`, path);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EEXIST" && code !== "ENOENT") throw error;
    if (code === "ENOENT") mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    return false;
  }
}

/** Two processes may see the same dead holder. Only one of them may remove the link, and only if it is still that one. */
function steal(path: string, mine: OwnMark): false {
  if (!isAbandoned(path, mine)) return false;
  const turn = `${path}.turn`;
  if (take(turn, mine)) {
    if (isAbandoned(path, mine)) remove(path);
    remove(turn);
  } else if (isAbandoned(turn, mine)) {
    // A process was killed in the middle of this.
    remove(turn);
  }
  return false;
}

function isAbandoned(path: string, { space: here }: OwnMark): boolean {
  try {
    const [pid = "", started = "", ...space] = readlinkSync(path).split(" ");
    // A process in another pid namespace cannot be looked at, so the age of its lock decides.
    return space.join(" ") === here ? !isRunning(Number(pid), started) : isOld(path);
  } catch {
    return false;
  }
}

function isOld(path: string): boolean {
  const changed = lstatSync(path, { throwIfNoEntry: false })?.ctimeMs;
  return changed !== undefined && Math.abs(Date.now() - changed) > patienceMs / 2;
}

/** Quicker than rmSync, which is felt at every start. */
export function remove(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // Somebody else has.
  }
}

function wait(path: string, isDone: () => boolean): void {
  for (let waited = 0; !isDone(); waited += pauseMs) {
    if (waited >= patienceMs) {
      throw new FilesystemError("FILESYSTEM", `Another Podbot has held ${path} for ${patienceMs / 1_000} seconds.`, {
        hint: "See with `ps` what it does. If there is none, remove the file.",
        details: { path },
      });
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pauseMs);
  }
}
