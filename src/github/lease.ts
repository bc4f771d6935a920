import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { FilesystemError } from "../errors.ts";
import { thisHost } from "../machine/host.ts";
import { withLock } from "../machine/lock.ts";
import { ownMark } from "../machine/process.ts";
import { lookAt, markOf, type ProcessMark } from "../machine/process-mark.ts";

/** The right to write a session's token. */
export interface Lease {
  release(): void;
}

const name = "token.writer";

/**
 * Takes the right to write the token of the session whose runtime directory this is; null where somebody has it who
 * lives, or of whom nothing can be told from here. Whoever is gone has it no longer.
 */
export function holdLease(directory: string): Lease | null {
  const path = join(directory, name);
  const mine = markOf(thisHost().pid);
  // What takes the lock would make the directory of a session that has ended.
  if (mine === null || !existsSync(directory)) return null;
  return locked(directory, () => {
    const holder = readMark(path);
    if (holder !== null && lookAt(holder) !== "dead") return null;
    writeFileSync(path, JSON.stringify(mine), { mode: 0o600 });
    // Nobody takes it from the living, so nobody need be kept out.
    return { release: () => rmSync(path, { force: true }) };
  });
}

function locked<T>(directory: string, work: () => T): T {
  try {
    return withLock(join(directory, `${name}.lock`), ownMark(), work);
  } catch (cause) {
    if (cause instanceof FilesystemError) throw cause;
    throw new FilesystemError("FILESYSTEM", `${directory} cannot be used to agree on who writes the token.`, {
      hint: "Is the session still there?",
      details: { path: directory },
      cause,
    });
  }
}

function readMark(path: string): ProcessMark | null {
  try {
    const { pid, started, space, machine } = JSON.parse(readFileSync(path, "utf8")) as ProcessMark;
    return { pid, started, space, machine };
  } catch {
    // Nobody wrote it, or somebody who died of it.
    return null;
  }
}
