import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import type { GitHubError } from "../errors.ts";
import { invalidKey, parseKey, type SigningKey } from "./key-form.ts";

export interface KeyFacts {
  /** The file's name, without its directory. */
  readonly file: string;
  readonly bits: number;
  readonly fingerprint: string;
}

export interface LoadedKey extends SigningKey {
  readonly file: string;
  readonly warnings: readonly string[];
}

/** Far more than any key has; far less than what would be felt. */
const largest = 65_536;

export function readKey(path: string): LoadedKey {
  const file = basename(path);
  const { text, mode } = readPlain(path, file);
  const others = (mode & 0o077) !== 0;
  const warning = `The GitHub App's private key ${file} can be read or changed by other users of this machine. \`chmod 600\` makes it yours alone.`;
  return { ...parseKey(text, file), file, warnings: others ? [warning] : [] };
}

function readPlain(path: string, file: string): { readonly text: string; readonly mode: number } {
  let descriptor: number | null = null;
  try {
    // A pipe would keep us waiting for whoever writes to it.
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
    const stats = fstatSync(descriptor);
    if (!stats.isFile()) throw invalidKey(file, "is not a file", "Name the key's own file.");
    if (stats.size > largest) throw invalidKey(file, "is too large for a key", "Name the key's own file.");
    return { text: readFileSync(descriptor, "utf8"), mode: stats.mode };
  } catch (error) {
    throw withCode(error, file);
  } finally {
    if (descriptor !== null) closeSync(descriptor);
  }
}

function withCode(error: unknown, file: string): GitHubError {
  const { code } = error as { readonly code: string };
  if (code === "GITHUB_KEY_INVALID") return error as GitHubError;
  const [what, hint] = troubles[code] ?? [`cannot be read (${code})`, "Check the file and the disk that it is on."];
  return invalidKey(file, what, hint);
}

const troubles: Readonly<Record<string, readonly [string, string]>> = {
  ENOENT: ["does not exist", "Check github.private_key_path."],
  ENOTDIR: ["does not exist", "Check github.private_key_path."],
  EACCES: ["may not be read by you", "Make it yours (it may have been put there with sudo), with mode 0600."],
};
