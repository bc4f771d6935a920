import {
  closeSync,
  constants,
  type Dirent,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
} from "node:fs";
import { FilesystemError } from "../errors.ts";
import { encodeEntry, type Owner, paddingOf } from "./tar-header.ts";

/** How much of a file is in memory at a time. */
const chunkSize = 128 * 1024;

/** What Linux takes as a path. Nothing deeper can be unpacked by name, and every level costs a descriptor. */
const longestName = 4096;

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;

/** An entry of the tree. Names are bytes, since they need not be text. */
export interface Place {
  /** What it is called on the host, for messages. */
  readonly path: Buffer;
  /** What it is called in the archive. */
  readonly name: Buffer;
  /** Whose it will be. */
  readonly owner: Owner;
}

/**
 * An open directory with all below it, each directory listed and each file opened when it is its turn. Names are
 * looked up in the open directory that they were listed in, and no link is followed: an agent that works in the same
 * tree cannot lead us elsewhere by swapping a part of the path.
 *
 * Synchronous, since a home may hold tens of thousands of small files: each takes 7 µs like this, and 190 µs by way of
 * Node's threads. Whoever asks for the parts decides how many at a time.
 */
export function* packDirectory(directory: number, place: Place): Generator<Buffer, void> {
  const { mode, mtimeMs: modifiedMs } = attempt(place, () => fstatSync(directory));
  yield encodeEntry({ ...place, kind: "directory", mode, modifiedMs });
  for (const entry of list(directory, place)) {
    const inside = { ...place, path: join(place.path, entry.name), name: join(place.name, entry.name) };
    const here = join(entranceOf(directory), entry.name);
    // Sockets, fifos and devices mean nothing elsewhere.
    if (entry.isSymbolicLink()) yield* packLink(here, inside);
    else if (entry.isDirectory()) yield* packOpened(here, O_DIRECTORY, inside, packDirectory);
    else if (entry.isFile()) yield* packOpened(here, 0, inside, packFile);
  }
}

/** Sorted, so that the same tree makes the same archive on every filesystem. */
function list(directory: number, place: Place): readonly Dirent<Buffer>[] {
  const options = { encoding: "buffer", withFileTypes: true } as const;
  const entries = attempt(place, () => readdirSync(entranceOf(directory), options));
  return entries.sort((a, b) => Buffer.compare(a.name, b.name));
}

/** A path that leads into the open directory, whatever its name stands for by now. */
function entranceOf(directory: number): Buffer {
  return Buffer.from(`/proc/self/fd/${directory}`);
}

function join(directory: Buffer, name: Buffer): Buffer {
  return Buffer.concat([directory, Buffer.from("/"), name]);
}

function* packLink(here: Buffer, place: Place): Generator<Buffer, void> {
  const stats = unlessGone(place, () => lstatSync(here));
  const target = unlessGone(place, () => readlinkSync(here, { encoding: "buffer" }));
  if (stats === null || target === null) return;
  yield encodeEntry({ ...place, kind: "link", mode: stats.mode, modifiedMs: stats.mtimeMs, target });
}

function* packOpened(
  here: Buffer,
  flags: number,
  place: Place,
  pack: (descriptor: number, place: Place) => Generator<Buffer, void>,
): Generator<Buffer, void> {
  if (place.name.length > longestName) throw failed(place, "its path is too long");
  // Non-blocking, since a fifo may have taken the place of a file.
  const descriptor = unlessGone(place, () => openSync(here, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | flags));
  if (descriptor === null) return;
  try {
    yield* pack(descriptor, place);
  } finally {
    closeSync(descriptor);
  }
}

/** An open file, as it is now. */
export function* packFile(file: number, place: Place): Generator<Buffer, void> {
  const stats = attempt(place, () => fstatSync(file));
  if (!stats.isFile()) return;
  const { size, mode, mtimeMs: modifiedMs } = stats;
  yield encodeEntry({ ...place, kind: "file", mode, modifiedMs, size });
  // What is appended meanwhile stays out: the header has announced a size.
  for (let left = size; left > 0; ) {
    const chunk = Buffer.allocUnsafeSlow(Math.min(left, chunkSize));
    const count = attempt(place, () => readSync(file, chunk));
    if (count === 0) throw failed(place, "it became shorter meanwhile");
    left -= count;
    yield chunk.subarray(0, count);
  }
  if (paddingOf(size) > 0) yield Buffer.alloc(paddingOf(size));
}

/**
 * Null where the name is gone since it was listed, or stands for something of another kind: a link is refused with
 * ELOOP, a directory's replacement with ENOTDIR, a socket with ENXIO, a link's replacement with EINVAL.
 */
function unlessGone<T>(place: Place, action: () => T): T | null {
  try {
    return action();
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? "";
    if (["ENOENT", "ELOOP", "ENOTDIR", "ENXIO", "EINVAL"].includes(code)) return null;
    throw failed(place, code, cause);
  }
}

function attempt<T>(place: Place, action: () => T): T {
  try {
    return action();
  } catch (cause) {
    throw failed(place, (cause as NodeJS.ErrnoException).code ?? (cause as Error).message, cause);
  }
}

function failed({ path }: Place, why: string, cause?: unknown): FilesystemError {
  const shown = path.toString();
  return new FilesystemError("FILESYSTEM", `Copying ${JSON.stringify(shown)} into the sandbox failed: ${why}.`, {
    hint: "Mend or remove it, or turn the copying of these credentials off (`creds`).",
    details: { path: shown },
    cause,
  });
}
