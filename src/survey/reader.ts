import { lstatSync, readdirSync, realpathSync, type Stats } from "node:fs";
import { FilesystemError, PolicyError } from "../errors.ts";
import { nameOf, parentOf } from "../policy/paths.ts";
import { refuseOwnClosed } from "./closed.ts";
import type { Node, NodeKind } from "./survey.ts";

/** Looks at names once and remembers what it saw. */
export class Reader {
  readonly nodes = new Map<string, Node>();
  /** Whether root inside passes by permissions. */
  readonly mighty: boolean;
  readonly #absent: ReadonlySet<string>;
  readonly #resolved = new Map<string, string | null>();
  readonly #names = new Map<string, ReadonlySet<string> | null>();

  /** `absent` are names that do not count: Podbot itself has made them for another sandbox, and will remove them. */
  constructor(absent: ReadonlySet<string> = new Set(), mighty = false) {
    this.#absent = absent;
    this.mighty = mighty;
  }

  /**
   * Most of what a policy names is not there. Where it asks for many names in one directory, listing that once is
   * cheaper than looking for each.
   */
  expect(paths: Iterable<string>): void {
    const asked = new Map<string, number>();
    for (const path of paths) {
      const parent = parentOf(path);
      asked.set(parent, (asked.get(parent) ?? 0) + 1);
    }
    for (const [directory, count] of asked) {
      const resolved = count > 4 ? this.resolve(directory) : null;
      if (resolved !== null) this.#names.set(resolved, namesIn(resolved));
    }
  }

  /** The path with every link resolved, or null where nothing is there (or nothing that we may see). */
  resolve(path: string): string | null {
    const known = this.#resolved.get(path);
    if (known !== undefined) return known;
    const resolved = this.#resolve(path);
    this.#resolved.set(path, resolved);
    return resolved;
  }

  /** One name at a time, so that no directory is looked at twice, and nothing below one that is missing. */
  #resolve(path: string): string | null {
    if (path === "/") return path;
    const parent = this.resolve(parentOf(path));
    if (parent === null || this.#names.get(parent)?.has(nameOf(path)) === false) return null;
    const here = parent === "/" ? `/${nameOf(path)}` : `${parent}/${nameOf(path)}`;
    const node = this.look(here);
    return node?.kind === "link" ? follow(here) : node === null ? null : here;
  }

  /** What a path whose parent is resolved stands for; its ancestors are remembered too. */
  look(path: string): Node | null {
    const known = this.nodes.get(path);
    if (known !== undefined) return known;
    const stats = this.#absent.has(path) ? null : statOf(path);
    if (stats === null) return null;
    const node: Node = { kind: kindOf(stats), identity: identityOf(stats), links: stats.nlink };
    this.nodes.set(path, node);
    if (path !== "/") this.look(parentOf(path));
    return node;
  }
}

function follow(link: string): string | null {
  try {
    const resolved = realpathSync.native(link);
    if (!resolved.includes("\ufffd")) return resolved;
  } catch (cause) {
    return unlessAbsent(cause, link);
  }
  // Node reads such a name as another one, which would be missing, and stay unprotected.
  throw new PolicyError("PATH_REFUSED", `${link} is a link to a name that is not UTF-8, so that cannot be protected.`, {
    hint: "Rename what it leads to, or remove the link.",
    details: { path: link },
  });
}

/** A directory that cannot be listed may still hold names that can be looked up: null says that nothing is known. */
function namesIn(directory: string): ReadonlySet<string> | null {
  try {
    return new Set(readdirSync(directory));
  } catch {
    return null;
  }
}

export function statOf(path: string): Stats | null {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) ?? null;
  } catch (cause) {
    return unlessAbsent(cause, path);
  }
}

/** What others have closed cannot be mounted by us either; anything else that fails must not pass as absence. */
function unlessAbsent(cause: unknown, path: string): null {
  const code = (cause as NodeJS.ErrnoException).code;
  if (code === "EACCES") refuseOwnClosed(path);
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
