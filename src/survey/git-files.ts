import { readdirSync } from "node:fs";
import { PolicyError } from "../errors.ts";
import { readPlainFile } from "../machine/plain-file.ts";
import { isOurUser } from "../machine/process.ts";
import { refuseOwnClosed } from "./closed.ts";
import { statOf } from "./reader.ts";
import { refuseUnreadable } from "./way.ts";

/** A directory with more entries than this is beyond what a list of mounts can hold. */
const mostEntries = 2_000;

/** git's own small files. */
const largestNote = 1 << 20;

/** What a small file of git's says; empty where there is none. What cannot be read cannot be passed over either. */
export function noteAt(path: string): string {
  const file = readPlainFile(path, largestNote);
  if (file.kind === "read") return file.bytes.toString("utf8");
  if (file.kind === "absent") return "";
  if (file.kind !== "refused") throw unreadable(path, file.kind);
  // In what others have closed, git itself reads nothing. What is our own, the agent can open again.
  if (isOurUser(statOf(path)?.uid)) throw unreadable(path, file.kind, file.cause);
  return "";
}

/**
 * The same for a configuration, of which nothing may be missed. `/dev/null` is how people say that there is none. What
 * is `everybodys` and closed to us, git passes over as well.
 */
export function configAt(path: string, everybodys = false): string {
  if (path === "/dev/null") return "";
  const file = readPlainFile(path, largestNote);
  if (file.kind === "read") return file.bytes.toString("utf8").replace(/^\ufeff/, "");
  // git refuses to work with a directory for a configuration.
  if (file.kind === "absent" || statOf(path)?.isDirectory()) return "";
  if (file.kind === "refused" && everybodys) return "";
  throw unreadable(path, file.kind, file.kind === "refused" ? file.cause : undefined);
}

function unreadable(path: string, kind: "link" | "special" | "too-large" | "refused", cause?: unknown): PolicyError {
  const what = {
    link: "was replaced by a link while it was looked at",
    special: "is no plain file",
    "too-large": "is larger than 1 MiB",
    refused: `cannot be read (${(cause as NodeJS.ErrnoException | undefined)?.code})`,
  }[kind];
  return new PolicyError("PATH_REFUSED", `${path}, which git obeys, ${what}, so what it says cannot be protected.`, {
    hint: "Repair or remove it, or switch git's protection off with --preset '!@git'.",
    details: { path },
    cause,
  });
}

/** What lies in a directory of git's. A name that is not UTF-8 could not be named again, and would stay unprotected. */
export function entriesOf(directory: string) {
  const entries = readable(directory) ?? [];
  for (const { name } of entries) refuseUnreadable(`${directory}/${name}`, directory);
  if (entries.length <= mostEntries) return entries;
  throw tooMany(directory, mostEntries, "entries");
}

export function tooMany(path: string, most: number, what: string): PolicyError {
  return new PolicyError("PATH_REFUSED", `${path} holds more than ${most} ${what}, too many to protect.`, {
    hint: `Remove those that you do not know (git pack-refs --all packs refs), or switch git's protection off with --preset '!@git'.`,
    details: { path, most },
  });
}

export function childDirectories(directory: string): readonly string[] {
  return entriesOf(directory)
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `${directory}/${name}`)
    .sort();
}

export function readable(directory: string) {
  try {
    return statOf(directory) === null ? null : readdirSync(directory, { withFileTypes: true });
  } catch (cause) {
    if (cause instanceof PolicyError) throw cause;
    refuseOwnClosed(directory);
    return null;
  }
}
