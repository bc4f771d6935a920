import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { type IsWritable, readOwnersFile } from "./owners-file.ts";

/** Where settings of package managers are looked for. */
export interface RegistryContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  /** Whether an agent may write at a path: what lies there says nothing about what the owner uses. */
  readonly isWritable: IsWritable;
  /** In place of `/`, for whoever looks at another machine's files. */
  readonly root?: string;
}

/** What a client's settings name. */
export interface RegistryUrls {
  readonly urls: readonly string[];
  /** What a registry says of itself, or the client has built in, and no setting of the owner's names: no host of the house. */
  readonly hearsay?: readonly string[];
  /** What the owner should know of hosts that are missing; null where none is. */
  readonly lacks: string | null;
  /** What the client inside must be told, which does not see the files that say it: they hold tokens. */
  readonly variables?: Readonly<Record<string, string>>;
}

/** An address without what a person or a token is known by. */
export function withoutUser(address: string): string {
  if (!URL.canParse(address)) return address;
  const url = new URL(address);
  url.username = "";
  url.password = "";
  return url.href;
}

/** A place of the machine's, as it is reached from here. */
export function placeIn({ root = "/" }: RegistryContext, path: string): string {
  return join(root, path);
}

const largestSettings = 4 * 1024 * 1024;

/** What a file of the owner's holds. Empty where there is none, or where an agent could have put it. */
export function readSettings({ isWritable }: RegistryContext, path: string): string {
  const file = readOwnersFile(path, isWritable, largestSettings);
  return file.kind === "owners" ? file.bytes.toString("utf8") : "";
}

/** Files of a directory with one of these endings, in order. */
export function listSettings(directory: string, endings: readonly string[]): readonly string[] {
  try {
    const names = readdirSync(directory).sort();
    return names.filter((name) => endings.some((ending) => name.endsWith(ending))).map((name) => join(directory, name));
  } catch {
    return [];
  }
}

/** Directories that a pattern of names leads to; `*` stands for whatever a name goes on with. */
export function expandDirectories(pattern: string): readonly string[] {
  const [first = "", ...rest] = pattern.split("*");
  if (rest.length === 0) return existsSync(pattern) ? [pattern] : [];
  const directory = first.slice(0, first.lastIndexOf("/") + 1);
  const tail = rest.join("*");
  return listSettings(directory, [""])
    .filter((path) => path.startsWith(first))
    .flatMap((path) => expandDirectories(path + tail));
}

/** The nearest file of this relative path in a directory at or above one. */
export function findAbove(directory: string, relative: string): string | null {
  for (let at = directory; ; at = dirname(at)) {
    if (existsSync(join(at, relative))) return join(at, relative);
    if (at === dirname(at)) return null;
  }
}

/** `key = value` lines; sections are passed over, lines that begin with a blank go on with the value before. */
export function readPairs(text: string): readonly (readonly [key: string, value: string])[] {
  const pairs: [string, string][] = [];
  for (const line of text.split(/\r?\n/)) {
    if (/^\s*(?:[#;]|$)/.test(line) || line.startsWith("[")) continue;
    const last = pairs.at(-1);
    const [, key, value] = /^([^\s=][^=]*?)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    if (/^\s/.test(line) && last !== undefined) last[1] += ` ${line.trim()}`;
    else if (key !== undefined && value !== undefined) pairs.push([key, value.replace(/^(["'])(.*)\1$/, "$2")]);
  }
  return pairs;
}

export function words(text: string | undefined): readonly string[] {
  return (text ?? "").split(/\s+/).filter((word) => word !== "");
}
