import { lstatSync, realpathSync, type Stats } from "node:fs";
import { FilesystemError } from "../errors.ts";
import { parentOf } from "../policy/paths.ts";
import type { Node, NodeKind } from "./survey.ts";

/** Looks at names once and remembers what it saw. */
export class Reader {
  readonly nodes = new Map<string, Node>();

  readonly #resolved = new Map<string, string | null>();

  /** The path with every link resolved, or null where nothing is there (or nothing that we may see). */
  resolve(path: string): string | null {
    const known = this.#resolved.get(path);
    if (known !== undefined) return known;
    const resolved = this.#resolve(path);
    this.#resolved.set(path, resolved);
    return resolved;
  }

  #resolve(path: string): string | null {
    // Most of what a policy names is not there; to ask first is many times cheaper than to catch.
    if (statOf(path) === null) return null;
    try {
      return realpathSync.native(path);
    } catch (cause) {
      return unlessAbsent(cause, path);
    }
  }

  /** What a resolved path stands for; its ancestors are remembered too. */
  look(path: string): Node | null {
    const known = this.nodes.get(path);
    if (known !== undefined) return known;
    const stats = statOf(path);
    if (stats === null) return null;
    const node: Node = { kind: kindOf(stats), identity: identityOf(stats), links: stats.nlink };
    this.nodes.set(path, node);
    if (path !== "/") this.look(parentOf(path));
    return node;
  }
}

export function statOf(path: string): Stats | null {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) ?? null;
  } catch (cause) {
    return unlessAbsent(cause, path);
  }
}

/** What may not be seen cannot be mounted by us either; anything else that fails must not pass as absence. */
function unlessAbsent(cause: unknown, path: string): null {
  const code = (cause as NodeJS.ErrnoException).code;
  if (code === "ENOENT" || code === "ENOTDIR" || code === "EACCES" || code === "ELOOP") return null;
  throw new FilesystemError("FILESYSTEM", `Looking at ${JSON.stringify(path)} failed: ${(cause as Error).message}`, {
    hint: "Leave the path out of the policy, or mend the filesystem.",
    cause,
  });
}

export function identityOf(stats: Pick<Stats, "dev" | "ino">): string {
  return `${stats.dev}:${stats.ino}`;
}

export function kindOf(stats: Stats): NodeKind {
  if (stats.isDirectory()) return "directory";
  if (stats.isFile()) return "file";
  if (stats.isSymbolicLink()) return "link";
  return stats.isSocket() ? "socket" : "other";
}
