import {
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  opendirSync,
  openSync,
  readSync,
  rmdirSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { basename, dirname } from "node:path";
import type { HeldName } from "../plan/plan.ts";
import { identityOf, O_NOFOLLOW, O_PATH } from "./pin.ts";

/**
 * A directory that was reached without following a link, and is the one that the plan saw. Names in it are made, looked
 * at and removed through its descriptor: an agent that moves the directory meanwhile leads nothing elsewhere.
 */
export interface Place extends Disposable {
  readonly descriptor: number;
  /** What the directory stands for, as `dev:ino`. */
  readonly identity: string;
}

/** Opens the directory of a name. Throws where a link is on the way, or the directory is not the one that is expected. */
export function openPlace({ path, directory }: Pick<HeldName, "path" | "directory">): Place {
  let descriptor = openSync("/", O_PATH | constants.O_DIRECTORY);
  try {
    for (const name of dirname(path)
      .split("/")
      .filter((part) => part !== "")) {
      const next = openSync(`/proc/self/fd/${descriptor}/${name}`, O_PATH | O_NOFOLLOW | constants.O_DIRECTORY);
      closeSync(descriptor);
      descriptor = next;
    }
    const identity = identityOf(descriptor);
    if (directory !== null && identity !== directory) throw new MovedError(dirname(path));
    return { descriptor, identity, [Symbol.dispose]: () => closeSync(descriptor) };
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
}

/** Another directory has taken the place of the one that the plan saw. */
class MovedError extends Error {
  constructor(path: string) {
    super(`${path} is another directory by now`);
  }
}

/** Makes a placeholder and returns its identity. Fails with EEXIST where something has the name. */
export function makePlaceholder(place: Place, { path, placeholder }: HeldName): string {
  const name = nameIn(place, path);
  if (placeholder.kind === "directory") mkdirSync(name, { mode: 0o755 });
  else {
    const { O_CREAT, O_EXCL, O_WRONLY } = constants;
    const file = openSync(name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, 0o644);
    try {
      writeSync(file, placeholder.content);
    } finally {
      closeSync(file);
    }
  }
  return withOpen(name, O_PATH, identityOf);
}

/** The identity of a placeholder that is still as it was made; null for anything else. Throws where nothing is there. */
export function findPlaceholder(place: Place, { path, placeholder }: HeldName): string | null {
  const name = nameIn(place, path);
  return placeholder.kind === "directory" ? emptyDirectory(name) : ownFile(name, Buffer.from(placeholder.content));
}

/** Removes a placeholder if it is still as it was made. What the owner has put to use is left. */
export function removePlaceholder(place: Place, held: HeldName): void {
  if (held.placeholder.kind === "directory") rmdirSync(nameIn(place, held.path));
  else if (findPlaceholder(place, held) !== null) unlinkSync(nameIn(place, held.path));
}

function nameIn({ descriptor }: Place, path: string): string {
  return `/proc/self/fd/${descriptor}/${basename(path)}`;
}

/** Nothing is waited for: an agent may have put a pipe or a link in the place of a placeholder. */
function withOpen<T>(path: string, flags: number, look: (descriptor: number) => T): T {
  const descriptor = openSync(path, flags | O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    return look(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function emptyDirectory(path: string): string | null {
  return withOpen(path, O_PATH, (descriptor) => {
    if (!fstatSync(descriptor).isDirectory()) return null;
    const listing = opendirSync(`/proc/self/fd/${descriptor}`);
    try {
      return listing.readSync() === null ? identityOf(descriptor) : null;
    } finally {
      listing.closeSync();
    }
  });
}

/** A Podbot that was killed between making a file and filling it has left it empty. */
function ownFile(path: string, content: Buffer): string | null {
  const kind = withOpen(path, O_PATH, (descriptor) => fstatSync(descriptor));
  if (!kind.isFile() || kind.size > content.length) return null;
  return withOpen(path, constants.O_RDONLY, (descriptor) => {
    const stats = fstatSync(descriptor);
    if (!stats.isFile()) return null;
    const found = Buffer.alloc(content.length + 1);
    const length = readSync(descriptor, found, 0, found.length, 0);
    return length === 0 || found.subarray(0, length).equals(content) ? identityOf(descriptor) : null;
  });
}
