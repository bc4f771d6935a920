import { closeSync, constants, fstatSync, openSync, readdirSync, readSync, statSync } from "node:fs";
import { extname, join } from "node:path";
import { ConfigError } from "../errors.ts";
import { showPath } from "./display.ts";

/** How large a configuration file may be, in bytes. */
const largestFile = 1 << 20;

const extensions: readonly string[] = [".toml", ".jsonc", ".json", ".yaml", ".yml"];

/** The configuration file in a directory, if there is one. Directories of such a name are not meant. */
export function findConfigFile(directory: string): string | undefined {
  const found = namesIn(directory)
    .filter((name) => name.startsWith("config.") && extensions.includes(name.slice("config".length)))
    .sort()
    .map((name) => join(directory, name))
    .filter((file) => !statSync(file, { throwIfNoEntry: false })?.isDirectory());
  if (found.length > 1) {
    throw new ConfigError("CONFIG_AMBIGUOUS", `${found.map(showPath).join(" and ")} lie side by side.`, {
      hint: "Keep one of them.",
      details: { files: found },
    });
  }
  return found[0];
}

/** The content of a configuration file. Never waits and never reads more than a configuration can be, whatever the path leads to. */
export function readConfigFile(file: string): Uint8Array {
  if (!extensions.includes(extname(file))) {
    throw unreadable(file, `has a name that ends in none of ${extensions.join(", ")}`);
  }
  let descriptor: number;
  try {
    // Opening a named pipe would otherwise wait for its writer.
    descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    throw unreadable(file, `cannot be opened: ${reasonOf(error)}`, error);
  }
  try {
    if (!fstatSync(descriptor).isFile()) throw unreadable(file, "is not a regular file");
    // One byte more than allowed, to tell a full file from one that is too large.
    const buffer = Buffer.alloc(largestFile + 1);
    let length = 0;
    while (length < buffer.length) {
      const count = readSync(descriptor, buffer, length, buffer.length - length, null);
      if (count === 0) break;
      length += count;
    }
    if (length > largestFile) throw unreadable(file, "is larger than 1 MiB, which no configuration needs");
    return buffer.subarray(0, length);
  } finally {
    closeSync(descriptor);
  }
}

/** A file that the owner named must be there: running without it would mean running without its restrictions. */
export function requireConfigFile(file: string, namedBy: string): string {
  if (statSync(file, { throwIfNoEntry: false }) !== undefined) return file;
  throw new ConfigError("CONFIG_NOT_FOUND", `${showPath(file)}, named by ${namedBy}, does not exist.`, {
    hint: `Correct ${namedBy}, or leave it out to use the usual places.`,
    details: { file },
  });
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return [];
    throw unreadable(directory, `cannot be listed: ${reasonOf(error)}`, error);
  }
}

function reasonOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? String(error);
}

function unreadable(file: string, what: string, cause?: unknown): ConfigError {
  return new ConfigError("CONFIG_UNREADABLE", `${showPath(file)} ${what}`, {
    hint: "Correct the file, or move it away to run without it.",
    details: { file },
    cause,
  });
}
