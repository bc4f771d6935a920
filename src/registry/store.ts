import { randomInt } from "node:crypto";
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { FilesystemError, SessionError } from "../errors.ts";
import { isRunning, startTimeOf } from "../machine/process.ts";
import { removeTree } from "../machine/remove-tree.ts";
import { type DamagedRecord, isSessionId, parseRecord, type SessionId, type SessionRecord } from "./record.ts";

/** Without 0 and o, 1, i and l: ids are read aloud and typed. */
const letters = "abcdefghjkmnpqrstuvwxyz";
const signs = `${letters}23456789`;

/** A record holds a command line, which the kernel bounds too. */
const largestRecord = 16 * 1024 * 1024;

export function newSessionId(): SessionId {
  const pick = (from: string) => from.charAt(randomInt(from.length));
  return pick(letters) + Array.from({ length: 9 }, () => pick(signs)).join("");
}

/** Where the record and the journal of a session lie. */
export function sessionDirectory(state: string, id: SessionId): string {
  if (!isSessionId(id))
    throw new SessionError("SESSION_NOT_FOUND", `No session can have the id ${JSON.stringify(id)}.`);
  return join(state, "sessions", id);
}

/**
 * Writes a record so that readers see the old one or the new one. A new session's directory comes into being with its
 * record in it: nobody sees it without, and takes it for a leftover. How one has ended that is kept is on the disk when
 * this returns; of the others nothing runs after a power failure, so they need not wait for the disk.
 */
export function writeRecord(state: string, record: SessionRecord): void {
  const directory = sessionDirectory(state, record.id);
  const birth = existsSync(directory) ? null : join(state, "sessions", `.${record.id}.${record.keeper.pid}.new`);
  const draft = join(birth ?? directory, "record.json.new");
  try {
    mkdirSync(birth ?? directory, { recursive: true, mode: 0o700 });
    const isLast = record.phase === "ended" && record.detached;
    writeNew(draft, `${JSON.stringify(record, null, 2)}\n`, isLast);
    renameSync(draft, join(birth ?? directory, "record.json"));
    if (birth !== null) renameSync(birth, directory);
  } catch (cause) {
    discard(birth ?? draft);
    const { code } = cause as NodeJS.ErrnoException;
    throw new FilesystemError(
      "FILESYSTEM",
      `The record of session ${record.id} cannot be written to ${directory}: ${code}.`,
      {
        hint: remedies[code ?? ""] ?? "Check the state directory, or set XDG_STATE_HOME to another one.",
        details: { path: directory, errno: code },
        cause,
      },
    );
  }
}

/** Of every session that has a record, the record or what is wrong with it. */
export function readRecords(state: string): readonly (SessionRecord | DamagedRecord)[] {
  return namesIn(join(state, "sessions"), "sessions")
    .filter(isSessionId)
    .flatMap((id) => readRecord(state, id) ?? []);
}

/** Null where there is no such session. */
export function readRecord(state: string, id: SessionId): SessionRecord | DamagedRecord | null {
  const directory = sessionDirectory(state, id);
  let descriptor: number;
  try {
    // Nothing but a file of its own: a pipe would have us wait for ever.
    const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
    descriptor = openSync(join(directory, "record.json"), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" && !existsSync(directory)) return null;
    return { id, damaged: code === "ENOENT" ? "its record is missing" : `its record cannot be read: ${code}` };
  }
  try {
    const stats = fstatSync(descriptor);
    if (!stats.isFile()) return { id, damaged: "its record is not a file" };
    if (stats.size > largestRecord) return { id, damaged: "its record is too large" };
    return parseRecord(readFileSync(descriptor, "utf8"), id);
  } catch (error) {
    return { id, damaged: `its record cannot be read: ${(error as NodeJS.ErrnoException).code}` };
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Removes the record and the journal. Succeeds where there is nothing; of links, only the link goes. It vanishes at
 * once, so that nobody sees half a session; what a crash leaves of it, the next removal takes.
 */
export function removeSession(state: string, id: SessionId): void {
  const directory = sessionDirectory(state, id);
  const gone = join(state, "sessions", `.${id}.gone`);
  removeDirectory(gone);
  try {
    renameSync(directory, gone);
  } catch (error) {
    // Not there, or not to be renamed: then the removal itself says why.
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") removeDirectory(directory);
  }
  sweepSessions(state);
}

/** Removes what crashes have left of sessions that were being removed, or had no record yet. */
export function sweepSessions(state: string): void {
  for (const name of namesIn(join(state, "sessions"), "sessions")) {
    const half = /^\.[a-z0-9]{10}\.(?:gone|(\d+)\.new)$/.exec(name);
    if (half === null) continue;
    // Of one that is being born, the keeper's pid is in the name: it takes a moment, and is not disturbed.
    if (half[1] === undefined || isGone(Number(half[1]))) removeDirectory(join(state, "sessions", name));
  }
}

function isGone(pid: number): boolean {
  const started = startTimeOf(pid);
  return started === null || !isRunning(pid, started);
}

/** The name of a session's clone, where that lies beside its record. */
export const cloneName = "clone";

/** Removes a session's clone, whatever its agent has made of it. */
export function removeClone(state: string, id: SessionId): void {
  removeDirectory(join(sessionDirectory(state, id), cloneName));
}

/** Removes one session's runtime directory, which is named after it. */
export function removeRuntime(directory: string, id: SessionId): void {
  if (!isSessionId(id) || !directory.endsWith(`/${id}`)) {
    throw new FilesystemError("FILESYSTEM", `${directory} is not the runtime directory of session ${id}.`);
  }
  removeDirectory(directory);
}

function removeDirectory(path: string): void {
  try {
    removeTree(path);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new FilesystemError("FILESYSTEM", `${path} cannot be removed: ${code}.`, {
      hint: remedies[code ?? ""] ?? "Remove it by hand.",
      details: { path, errno: code },
      cause,
    });
  }
}

function writeNew(path: string, content: string, isLast: boolean): void {
  // What a crash has left is in nobody's use: a session has one writer.
  rmSync(path, { force: true });
  const descriptor = openSync(path, "wx", 0o600);
  try {
    writeFileSync(descriptor, content);
    if (isLast) fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function discard(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {
    // The first failure is the one to tell.
  }
}

/** All that lies in a directory of the state; nothing where it is not there. `what` is the word for it. */
export function namesIn(directory: string, what: "sessions" | "audits"): readonly string[] {
  try {
    return readdirSync(directory);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "ENOENT") return [];
    throw new FilesystemError("FILESYSTEM", `The ${what} in ${directory} cannot be listed: ${code}.`, {
      hint: remedies[code ?? ""] ?? "Check the state directory, or set XDG_STATE_HOME to another one.",
      details: { path: directory, errno: code },
      cause,
    });
  }
}

const remedies: Readonly<Record<string, string>> = {
  ENOSPC: "The disk is full. Free some space, or set XDG_STATE_HOME to a directory on another disk.",
  EDQUOT: "Your disk quota is used up. Free some space, or set XDG_STATE_HOME to a directory on another disk.",
  EROFS: "The filesystem is read-only. Set XDG_STATE_HOME to a directory that can be written.",
  EACCES: "Make the directory yours (it may have been made with sudo), or set XDG_STATE_HOME to another one.",
  EPERM: "Make the directory yours (it may have been made with sudo), or set XDG_STATE_HOME to another one.",
};
