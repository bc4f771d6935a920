import { closeSync, constants, fstatSync, lstatSync, openSync, realpathSync, type Stats } from "node:fs";
import { dirname, join } from "node:path";
import { addAbortSignal, Readable } from "node:stream";
import { FilesystemError } from "../errors.ts";
import { thisHost } from "../machine/host.ts";
import { blockSize, encodeEntry, type Owner } from "./tar-header.ts";
import { packDirectory, packFile } from "./tree.ts";

export interface PackRequest {
  /** The owner's home. */
  readonly home: string;
  /** Which files and directories of it, each relative to it: `.claude`, `.config/goose/config.yaml`. */
  readonly names: readonly string[];
  /** The home inside. */
  readonly target: string;
  /** Whose everything is inside: it stands in every header. */
  readonly owner: Owner;
  /** Ends the packing; the archive is then destroyed. */
  readonly signal?: AbortSignal;
}

export interface PackedCredentials {
  /** Where they will be, in the order asked for: `/root/.claude`, `/root/.codex`. Only those that were present. */
  readonly paths: readonly string[];
  /** A tar stream relative to the target's home, made while it is read; null where there is nothing. */
  readonly archive: Readable | null;
}

/** How much is made at a time: no more than fits in a few milliseconds, were it all empty files. */
const sliceSize = 256 * 1024;

/** A file or directory as it was found. */
export interface Source {
  readonly name: string;
  /** Where it lies, with links resolved. */
  readonly path: string;
  readonly stats: Stats;
}

/**
 * Finds the files and directories, and makes one archive of those that are present. No descriptor is open before the archive is
 * read, nor after its end or destruction.
 */
export async function packCredentials(request: PackRequest): Promise<PackedCredentials> {
  const { home, names, target, owner, signal } = request;
  signal?.throwIfAborted();
  const sources: Source[] = [];
  for (const name of new Set(names)) {
    const source = locate(home, name);
    if (source !== null) sources.push(source);
  }
  if (sources.length === 0) return { paths: [], archive: null };
  const archive = streamOf(packSources(sources, owner));
  if (signal !== undefined) addAbortSignal(signal, archive);
  return { paths: sources.map(({ name }) => join(target, name)), archive };
}

/** What lies at a name below the home; null where nothing does. Throws where it is nothing that may be copied. */
export function locate(home: string, name: string): Source | null {
  const path = join(home, name);
  if (!isBelow(name)) throw unusable(path, "its name does not lie below the home");
  const stats = look(path);
  if (stats === null) return null;
  const isNested = name.includes("/");
  // What an agent may write lies in a directory of its own: there it could have put a link to what it may not read.
  if (isNested && stats.isSymbolicLink()) throw unusable(path, "it is a link in a directory that agents write to");
  if (stats.isSymbolicLink() || (isNested && hasLinks(home, dirname(name)))) return { name, ...follow(path, home) };
  if (!isPackable(stats)) throw unusable(path, "it is neither a directory nor a file");
  return { name, path, stats };
}

function isPackable(stats: Stats | null): stats is Stats {
  return stats?.isDirectory() === true || stats?.isFile() === true;
}

/** Whether the way from the home to a directory in it leads over links. */
function hasLinks(home: string, name: string): boolean {
  return resolve(join(home, name)) !== join(resolve(home), name);
}

function isBelow(name: string): boolean {
  return !name.includes("\0") && name.split("/").every((part) => part !== "" && part !== "." && part !== "..");
}

function look(path: string): Stats | null {
  try {
    return lstatSync(path);
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? "";
    if (code === "ENOENT") return null;
    throw unusable(path, `it cannot be looked at (${code})`, cause);
  }
}

/**
 * Managers of dotfiles put a link where a directory or file should be, so it is followed; but only to one of the
 * caller's own, lest a name that somebody else could write sends away what is theirs, and never to the home or above
 * it, where everything else would come along.
 */
function follow(link: string, home: string): Omit<Source, "name"> {
  const path = resolve(link);
  const stats = look(path);
  if (!isPackable(stats)) throw unusable(link, "the link does not lead to a directory or file");
  if (stats.uid !== thisHost().uid) throw unusable(link, "the link leads to what is another user's");
  if (`${resolve(home)}/`.startsWith(join(path, "/"))) throw unusable(link, "the link leads to the home itself");
  return { path, stats };
}

function resolve(path: string): string {
  try {
    return realpathSync.native(path);
  } catch (cause) {
    throw unusable(path, "the link leads nowhere", cause);
  }
}

/** Two blocks of zeros are the end of an archive. */
function* packSources(sources: readonly Source[], owner: Owner): Generator<Buffer, void> {
  const made = new Set(sources.map(({ name }) => name));
  for (const source of sources) {
    yield* packAncestors(source, owner, made);
    yield* packSource(source, owner);
  }
  yield Buffer.alloc(2 * blockSize);
}

/** The directories above it, each once: the home inside need not have them, and they are nobody else's affair. */
export function* packAncestors(
  { name }: Pick<Source, "name">,
  owner: Owner,
  made: Set<string>,
): Generator<Buffer, void> {
  const parts = name.split("/").slice(0, -1);
  for (const [at] of parts.entries()) {
    const ancestor = parts.slice(0, at + 1).join("/");
    if (made.has(ancestor)) continue;
    made.add(ancestor);
    yield encodeEntry({ name: Buffer.from(ancestor), kind: "directory", mode: 0o700, modifiedMs: 0, owner });
  }
}

function* packSource({ name, path, stats }: Source, owner: Owner): Generator<Buffer, void> {
  const isDirectory = stats.isDirectory();
  const descriptor = openSource(path, isDirectory ? constants.O_DIRECTORY : constants.O_NONBLOCK);
  try {
    const { dev, ino } = fstatSync(descriptor);
    if (dev !== stats.dev || ino !== stats.ino) throw unusable(path, "it was replaced meanwhile");
    const pack = isDirectory ? packDirectory : packFile;
    yield* pack(descriptor, { path: Buffer.from(path), name: Buffer.from(name), owner });
  } finally {
    closeSync(descriptor);
  }
}

export function openSource(path: string, flags: number): number {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | flags);
  } catch (cause) {
    throw unusable(path, `it cannot be opened (${(cause as NodeJS.ErrnoException).code})`, cause);
  }
}

function unusable(path: string, why: string, cause?: unknown): FilesystemError {
  return new FilesystemError("FILESYSTEM", `The credentials in ${JSON.stringify(path)} cannot be copied: ${why}.`, {
    hint: "Mend or remove it, or turn the copying of these credentials off (`creds`).",
    details: { path },
    cause,
  });
}

/**
 * Made in slices, each in a turn of its own: between them the process answers others, and whoever reads may stop.
 * No part is made before it is wanted.
 */
function streamOf(parts: Generator<Buffer, void>): Readable {
  const archive: Readable = new Readable({
    highWaterMark: sliceSize,
    read: () => void setImmediate(pushSlice, archive, parts),
    destroy(error, done) {
      parts.return(undefined);
      done(error);
    },
  });
  return archive;
}

function pushSlice(archive: Readable, parts: Generator<Buffer, void>): void {
  for (let size = 0; size < sliceSize && !archive.destroyed; ) {
    const part = nextOf(archive, parts);
    if (part === undefined || !archive.push(part) || part === null) return;
    size += part.length;
  }
}

/** Null at the end, undefined where it failed. What a listener throws is not caught here: it is no failure of ours. */
function nextOf(archive: Readable, parts: Generator<Buffer, void>): Buffer | null | undefined {
  try {
    return parts.next().value ?? null;
  } catch (error) {
    archive.destroy(error as Error);
    return undefined;
  }
}
