import { type Dirent, readdirSync } from "node:fs";
import { FilesystemError, PolicyError } from "../errors.ts";
import { isGlob, segmentMatcher } from "../policy/glob.ts";
import { refuseOwnClosed } from "./closed.ts";
import type { Reader } from "./reader.ts";

/** A pattern that would read more names than this is a mistake, and half an answer would be a hole. */
const mostNames = 2_000_000;
/** From then on the owner is told what takes so long. */
const longMs = 1_000;

export interface Expansion {
  /** Default: two million. */
  readonly mostNames?: number;
  /** Default: a second. */
  readonly longMs?: number;
  /** Called once, where it takes longer. */
  readonly onLong?: ((pattern: string) => void) | undefined;
}

/** The existing paths that a pattern stands for, with links resolved. */
export function expandPattern(
  pattern: string,
  glob: boolean,
  reader: Reader,
  expansion: Expansion = {},
): readonly string[] {
  if (!glob) {
    const resolved = reader.resolve(pattern);
    return resolved === null ? [] : [resolved];
  }
  const resolved = new Walk(pattern, reader.mighty, expansion)
    .run()
    .map((path) => reader.resolve(path))
    .filter((path) => path !== null);
  return [...new Set(resolved)].sort();
}

/** One segment of a pattern. */
type Segment =
  | { readonly kind: "directories" }
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "glob"; readonly test: (name: string) => boolean };

/** What is looked for in a directory: segments that its entries may match, by their numbers. */
interface Search {
  readonly at: readonly number[];
  readonly seeksDirectories: boolean;
  /** Only names that are written out: nothing has to be listed. */
  readonly isPlain: boolean;
}

/** Reads each directory once, with the kinds of its entries, and none in which nothing can match. */
class Walk {
  readonly #pattern: string;
  readonly #mighty: boolean;
  readonly #segments: readonly Segment[];
  readonly #searches = new Map<string, Search>();
  readonly #found: string[] = [];
  readonly #most: number;
  readonly #onLong: Expansion["onLong"];
  readonly #tellAt: number;
  #isLong = false;
  #names = 0;
  /** How many names were read in and below each entry of the first directory that was listed. */
  readonly #shares = new Map<string, number>();

  constructor(
    pattern: string,
    mighty: boolean,
    { mostNames: most = mostNames, longMs: tellMs = longMs, onLong }: Expansion,
  ) {
    this.#pattern = pattern;
    this.#mighty = mighty;
    this.#most = most;
    this.#onLong = onLong;
    this.#tellAt = performance.now() + tellMs;
    this.#segments = pattern
      .split("/")
      .slice(1)
      .map((segment): Segment => {
        if (segment === "**") return { kind: "directories" };
        if (!isGlob(segment)) return { kind: "name", name: segment };
        const matcher = segmentMatcher(segment, pattern);
        return { kind: "glob", test: (name) => matcher.test(name) };
      });
  }

  run(): readonly string[] {
    this.#visit("", [0], null);
    return this.#found;
  }

  /** `share` is what the names here count for; null until a directory is listed. */
  #visit(directory: string, from: readonly number[], share: string | null): void {
    const search = this.#searchFrom(from);
    if (this.#isEnd(search)) this.#found.push(directory);
    const entries = search.isPlain ? null : this.#list(directory, share ?? directory);
    if (entries === null) {
      this.#visitNames(directory, search, share);
      return;
    }
    for (const entry of entries) this.#take(entry, directory, search, share);
  }

  /** Behind the last `**`, the directory itself is meant. */
  #isEnd({ at }: Search): boolean {
    return at.includes(this.#segments.length);
  }

  /** Names that are written out are there or not, which is found out later; a directory need not be listed for that. */
  #visitNames(directory: string, { at }: Search, share: string | null): void {
    for (const number of at) {
      const segment = this.#segments[number];
      if (segment?.kind !== "name") continue;
      const path = `${directory}/${segment.name}`;
      if (this.#isLast(number)) this.#found.push(path);
      else this.#visit(path, [number + 1], share);
    }
  }

  #take(entry: Dirent, directory: string, { at, seeksDirectories }: Search, share: string | null): void {
    const { name } = entry;
    const isDirectory = entry.isDirectory();
    const leadsOn = isDirectory || entry.isSymbolicLink();
    // Links are not followed by `**`, so the walk ends.
    const next: number[] = [];
    let isFound = false;
    for (const number of at) {
      const segment = this.#segments[number];
      if (segment === undefined) continue;
      if (segment.kind === "directories") {
        if (isDirectory) next.push(number);
      } else if (this.#isLast(number)) {
        isFound ||= matches(segment, name);
      } else if (leadsOn && matches(segment, name)) next.push(number + 1);
    }
    if (!isFound && next.length === 0) return;
    const path = `${directory}/${name}`;
    if (isFound) this.#found.push(path);
    if (next.length > 0) this.#visit(path, next, share ?? (seeksDirectories ? path : null));
  }

  #isLast(number: number): boolean {
    return number === this.#segments.length - 1;
  }

  /** `**` stands for no directory, too: whatever follows it is looked for at once. */
  #searchFrom(from: readonly number[]): Search {
    const key = from.join(" ");
    const known = this.#searches.get(key);
    if (known !== undefined) return known;
    const at = new Set<number>();
    for (const number of from) {
      let next = number;
      at.add(next);
      while (this.#segments[next]?.kind === "directories") at.add(++next);
    }
    const segments = [...at].map((number) => this.#segments[number]).filter((segment) => segment !== undefined);
    const search: Search = {
      at: [...at],
      seeksDirectories: segments.some(({ kind }) => kind === "directories"),
      isPlain: segments.every(({ kind }) => kind === "name"),
    };
    this.#searches.set(key, search);
    return search;
  }

  /** Null where the directory cannot be listed. */
  #list(directory: string, share: string): readonly Dirent[] | null {
    try {
      const entries = readdirSync(directory === "" ? "/" : directory, { withFileTypes: true });
      this.#count(entries.length, share);
      if (entries.some(({ name }) => name.includes("\ufffd"))) throw unspeakable(this.#pattern, directory);
      return entries;
    } catch (cause) {
      const code = (cause as NodeJS.ErrnoException).code;
      if (cause instanceof PolicyError) throw cause;
      // Where a database of another sandbox's lies in a project, say, only root of a container gets in.
      if (code === "EACCES") refuseOwnClosed(directory, this.#mighty);
      if (code === "ENOENT" || code === "ENOTDIR" || code === "EACCES" || code === "ELOOP") return null;
      throw new FilesystemError("FILESYSTEM", `Expanding ${JSON.stringify(this.#pattern)} failed in ${directory}`, {
        cause,
      });
    }
  }

  #count(names: number, share: string): void {
    this.#names += names;
    this.#shares.set(share, (this.#shares.get(share) ?? 0) + names);
    if (this.#names > this.#most) throw tooMany(this.#pattern, this.#most, this.#shares);
    if (this.#isLong || performance.now() < this.#tellAt) return;
    this.#isLong = true;
    this.#onLong?.(this.#pattern);
  }
}

function matches(segment: Exclude<Segment, { kind: "directories" }>, name: string): boolean {
  return segment.kind === "name" ? segment.name === name : segment.test(name);
}

/** A name that is not UTF-8 cannot be named again, so a rule that should hold for it would not. */
function unspeakable(pattern: string, directory: string): PolicyError {
  return new PolicyError(
    "PATTERN_INVALID",
    `The pattern ${JSON.stringify(pattern)} meets a name in ${directory} that is not UTF-8.`,
    {
      hint: "Rename it, or name the directory more precisely.",
      details: { pattern, directory },
    },
  );
}

function tooMany(pattern: string, most: number, shares: ReadonlyMap<string, number>): PolicyError {
  const [directory = "/", names = 0] = [...shares].sort(([, one], [, other]) => other - one)[0] ?? [];
  const place = directory === "" ? "/" : directory;
  return new PolicyError(
    "PATTERN_INVALID",
    `The pattern ${JSON.stringify(pattern)} reads more than ${most} names, ${names} of them in ${place}.`,
    {
      hint: `Begin the pattern with the directories that it is about, without ${place}, as in "src/**/.env*". To hide the whole of it, exclude ${place} itself.`,
      details: { pattern, directory: place, names },
    },
  );
}
