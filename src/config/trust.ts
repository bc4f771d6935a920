import { createHash, randomBytes } from "node:crypto";
import {
  chmodSync,
  closeSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  type Stats,
  statSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { ConfigError, FilesystemError } from "../errors.ts";
import { readConfigFile } from "./config-file.ts";
import { isTable, showPath } from "./display.ts";
import { statePath } from "./paths.ts";

export interface TrustOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
}

/** A project file that the owner has trusted, with the content that it had then. */
export interface TrustedFile {
  readonly file: string;
  /** SHA-256 of the content, in hex. */
  readonly hash: string;
}

/**
 * Trusts a project's configuration as it is now. `hash` is what the owner reviewed: a file that has changed since is
 * refused, so that nobody trusts what they have not seen.
 */
export async function trustProject(
  file: string,
  options: TrustOptions & { readonly hash?: string },
): Promise<TrustedFile> {
  const trusted = { file: canonicalProjectFile(file), hash: hashOf(readConfigFile(file)) };
  if (options.hash !== undefined && options.hash !== trusted.hash) {
    throw new ConfigError("CONFIG_UNTRUSTED", `${showPath(file)} has changed since it was reviewed.`, {
      hint: "Review it again, then run `podbot trust` once more.",
      details: { file: trusted.file },
    });
  }
  writeRecords(options, [...readRecords(options).filter((record) => record.file !== trusted.file), trusted]);
  return trusted;
}

/** Takes trust back. Answers whether there was any. */
export async function revokeTrust(file: string, options: TrustOptions): Promise<boolean> {
  const canonical = canonicalProjectFile(file);
  const records = readRecords(options);
  const kept = records.filter((record) => record.file !== canonical);
  if (kept.length === records.length) return false;
  writeRecords(options, kept);
  return true;
}

export async function listTrusted(options: TrustOptions): Promise<readonly TrustedFile[]> {
  return readRecords(options);
}

/** Whether the owner has trusted this content at this place. */
export function isTrusted({ file, hash }: TrustedFile, options: TrustOptions): boolean {
  return readRecords(options).some((record) => record.file === file && record.hash === hash);
}

export function hashOf(content: Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

/**
 * The name under which a project file is trusted: the project's real directory, then `.podbot/config.*` as it stands
 * there. Links below the project are not followed: a project that links its file to that of another would otherwise
 * share the trust that the other was given.
 */
export function canonicalProjectFile(file: string): string {
  const absolute = resolve(file);
  const podbot = dirname(absolute);
  return join(realPathOrSame(dirname(podbot)), basename(podbot), basename(absolute));
}

/** A project that is gone can still be forgotten. */
function realPathOrSame(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

function recordsPath(options: TrustOptions): string {
  return join(statePath(options.env, options.home), "trust.json");
}

function readRecords(options: TrustOptions): readonly TrustedFile[] {
  const path = recordsPath(options);
  const refuse = (what: string, hint: string, cause?: unknown) =>
    new FilesystemError("FILESYSTEM", `The trust records ${showPath(path)} ${what}.`, {
      hint,
      details: { path },
      cause,
    });

  let read: { readonly text: string; readonly stats: Stats } | undefined;
  try {
    read = readWithStats(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw refuse(`cannot be read: ${code}`, "Make the file readable, or remove it to trust nothing.", error);
  }
  if (read === undefined) return [];
  const owners = [0, statSync(options.home, { throwIfNoEntry: false })?.uid];
  if (!owners.includes(read.stats.uid) || (read.stats.mode & 0o022) !== 0) {
    throw refuse(
      "could have been written by someone else",
      "Check them, then make them yours alone with chown and chmod 600.",
    );
  }
  const records = parseRecords(read.text);
  if (records === undefined) throw refuse("are damaged", "Remove the file and trust your projects again.");
  return records;
}

/** Undefined when there is no such file. Content and owner are those of one file, even if another takes its place meanwhile. */
function readWithStats(path: string): { readonly text: string; readonly stats: Stats } | undefined {
  let descriptor: number;
  try {
    descriptor = openSync(path, "r");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw error;
  }
  try {
    return { text: readFileSync(descriptor, "utf8"), stats: fstatSync(descriptor) };
  } finally {
    closeSync(descriptor);
  }
}

function parseRecords(text: string): readonly TrustedFile[] | undefined {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isTable(content) || content["version"] !== 1 || !Array.isArray(content["trusted"])) return undefined;
  const records: TrustedFile[] = [];
  for (const record of content["trusted"] as readonly unknown[]) {
    if (!isTable(record) || typeof record["file"] !== "string" || typeof record["hash"] !== "string") return undefined;
    records.push({ file: record["file"], hash: record["hash"] });
  }
  return records;
}

/** Written beside and renamed, so that a reader sees the old records or the new ones, and a crash leaves one of the two. */
function writeRecords(options: TrustOptions, records: readonly TrustedFile[]): void {
  const path = recordsPath(options);
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    chmodSync(dirname(path), 0o700);
    replaceFile(path, `${JSON.stringify({ version: 1, trusted: records }, null, 2)}\n`);
  } catch (error) {
    throw new FilesystemError("FILESYSTEM", `The trust records ${showPath(path)} cannot be written.`, {
      hint: "Make their directory writable for you.",
      details: { path },
      cause: error,
    });
  }
}

function replaceFile(path: string, content: string): void {
  const draft = `${path}.${randomBytes(6).toString("hex")}`;
  const descriptor = openSync(draft, "wx", 0o600);
  try {
    writeFileSync(descriptor, content);
    fsyncSync(descriptor);
    renameSync(draft, path);
  } catch (error) {
    unlinkSync(draft);
    throw error;
  } finally {
    closeSync(descriptor);
  }
}
