import { readlinkSync } from "node:fs";
import { PolicyError } from "../errors.ts";
import { readPlainFile } from "../machine/plain-file.ts";
import type { GitLayout, Held } from "../policy/git.ts";
import { isWithin, parentOf } from "../policy/paths.ts";
import { readable } from "./git-files.ts";
import { type Reader, statOf } from "./reader.ts";

/**
 * A directory is a repository itself, for git, if there is a HEAD in it, and `objects` and `refs` in it or in the
 * directory that `commondir` names.
 */
export function isBare(directory: string): boolean {
  return ["HEAD", "objects", "refs"].every((name) => statOf(`${directory}/${name}`) !== null);
}

export function isEmptyDirectory(path: string): boolean {
  return statOf(path)?.isDirectory() === true && readable(path)?.length === 0;
}

interface Standing {
  readonly root: string;
  readonly entry: GitLayout["entry"];
  readonly cwd: string;
  /** The repository's own, and none that an agent may have named. */
  readonly gitDirs: readonly string[];
}

/**
 * Where `.git` is no repository (any more), git takes the very directory for one. So it must not become one, from the
 * working directory up to the top. HEAD itself cannot be held: beside a file of that name, `git diff HEAD` is ambiguous.
 * While `commondir` is a directory, git refuses to go on; afterwards one of the other names is missing.
 */
export function bareNames({ root, entry, cwd, gitDirs }: Standing, reader: Reader): readonly Held[] {
  const found: Held[] = [];
  for (let at = cwd; ; at = parentOf(at)) {
    // In a git directory, git takes that one.
    if (gitDirs.some((directory) => isWithin(at, directory)) && at !== root) continue;
    // A bare repository is protected as such; where `.git` is a file that leads nowhere, git looks no further.
    if (at === root && (entry.path === root || entry.kind === "file")) return found;
    found.push(...heldAgainstBare(at, reader));
    if (at === root) return found;
  }
}

/** Names that keep a directory from becoming a bare repository while they are held. */
export function heldAgainstBare(directory: string, reader: Reader): readonly Held[] {
  return namesIn(directory, reader).map((name) => ({
    path: `${directory}/${name}`,
    placeholder: { kind: "directory" },
  }));
}

function namesIn(directory: string, reader: Reader): readonly string[] {
  const missing = ["refs", "objects"].find((name) => reader.look(`${directory}/${name}`) === null);
  if (missing !== undefined) return ["commondir", missing];
  if (!isHead(`${directory}/HEAD`)) return ["HEAD"];
  throw new PolicyError("PATH_REFUSED", `${directory} looks like a bare repository beside the one around it.`, {
    hint: `git would obey ${directory}/config if it did not find another. Remove HEAD, objects and refs there, or work elsewhere.`,
    details: { path: directory },
  });
}

/** What git takes for a HEAD, wherever it leads. */
export function isHead(path: string): boolean {
  const stats = statOf(path);
  if (stats?.isSymbolicLink()) return readlinkSync(path).startsWith("refs/");
  const file = readPlainFile(path, largestHead);
  // git reads only how it begins.
  return file.kind === "too-large" || (file.kind === "read" && headText.test(file.bytes.toString("latin1")));
}

const largestHead = 4_096;
const headText = /^(?:ref:\s*refs\/|[0-9a-f]{40})/;
