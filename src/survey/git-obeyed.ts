import type { Held } from "../policy/git.ts";
import { isWithin, parentOf } from "../policy/paths.ts";
import { readable } from "./git-files.ts";
import { type FileSetting, pathOf, readSettings } from "./git-settings.ts";
import type { Reader } from "./reader.ts";
import { findWay } from "./way.ts";

export interface Around {
  readonly cwd: string;
  readonly home: string;
  /** The top of the worktree, and those of submodules and linked worktrees: git runs hooks there. */
  readonly tops: readonly string[];
  /** Git directories. */
  readonly places: readonly string[];
  /** What git keeps of linked worktrees. */
  readonly worktrees: readonly string[];
  /** Configurations that git reads besides those. */
  readonly configs: readonly string[];
  /** `.git` files. */
  readonly pointers: readonly string[];
}

/** What git obeys besides its own files. All paths are resolved. */
export interface Obeyed {
  readonly files: readonly string[];
  readonly hookDirectories: readonly string[];
  /** What is named and missing: git would obey it once an agent has made it. */
  readonly absent: readonly Held[];
  /** What git passes on the way, and where that leads: it obeys something else if one of them is replaced. */
  readonly steps: Readonly<Record<string, string>>;
}

/** Finds what configurations include, name as hooks and name as programs, what hooks are links to, and `.git` files. */
export function findObeyed(around: Around, reader: Reader): Obeyed {
  const { cwd, home, tops, places, configs } = around;
  const found = new Found(reader);
  const own = [
    ...places.map((place) => `${place}/config`),
    ...[...places, ...around.worktrees].map((place) => `${place}/config.worktree`),
  ];
  const { all, included, read } = readSettings(own, configs, home, reader);
  for (const way of included) found.file(way);
  for (const { steps } of read) found.pass(steps);
  // A home in a repository: then git's settings for everything are part of the workspace.
  for (const way of read.slice(own.length)) if (isWithin(way.end ?? way.missing?.path ?? "/", cwd)) found.file(way);
  for (const path of [...around.pointers, ...worktreePointers(all)]) found.pointer(path);
  const hooks = places.map((place) => `${place}/hooks`);
  for (const path of hooks) found.pass(findWay(path, reader).steps);
  for (const path of hookPaths(all, tops, home)) found.hookDirectory(path);
  for (const directory of [...found.hookDirectories, ...hooks]) {
    for (const entry of readable(directory) ?? []) {
      // git calls hooks by names of its own, which are ASCII.
      if (entry.isSymbolicLink() && !entry.name.includes("\ufffd"))
        found.file(findWay(`${directory}/${entry.name}`, reader));
    }
  }
  for (const path of programs(all, tops, home)) found.program(path);
  return found.all();
}

class Found {
  readonly hookDirectories = new Set<string>();
  readonly #files = new Set<string>();
  readonly #absent = new Map<string, Held>();
  readonly #steps = new Set<string>();
  readonly #reader: Reader;

  constructor(reader: Reader) {
    this.#reader = reader;
  }

  pass(steps: readonly string[]): void {
    for (const step of steps) this.#steps.add(step);
  }

  file({ end, missing, steps }: ReturnType<typeof findWay>): void {
    this.pass(steps);
    if (end !== null) this.#files.add(end);
    if (missing !== null) this.#hold(missing.path, missing.isLast ? "file" : "directory");
  }

  /** A git directory of a submodule's own is no pointer, and must stay writable. */
  pointer(path: string): void {
    const { end, steps } = findWay(path, this.#reader);
    this.pass(steps);
    if (this.#isFile(end)) this.#files.add(end);
  }

  hookDirectory(path: string): void {
    const { end, missing, steps } = findWay(path, this.#reader);
    this.pass(steps);
    if (end !== null) this.hookDirectories.add(end);
    if (missing !== null) this.#hold(missing.path, "directory");
  }

  program(path: string): void {
    const { end } = findWay(path, this.#reader);
    if (this.#isFile(end)) this.pointer(path);
  }

  all(): Obeyed {
    return {
      files: [...this.#files],
      hookDirectories: [...this.hookDirectories],
      absent: [...this.#absent.values()],
      steps: Object.fromEntries([...this.#steps].map((step) => [step, this.#reader.resolve(step) ?? ""])),
    };
  }

  #isFile(path: string | null): path is string {
    return path !== null && this.#reader.look(path)?.kind === "file";
  }

  #hold(path: string, kind: "file" | "directory"): void {
    this.#absent.set(path, { path, placeholder: kind === "file" ? { kind, content: "" } : { kind } });
  }
}

/** A submodule's configuration names its worktree, in which a `.git` file leads back. */
function worktreePointers(settings: readonly FileSetting[]): readonly string[] {
  return settings
    .filter(({ section, key, value }) => section === "core" && key === "worktree" && value !== "")
    .map(({ value, file }) => `${value.startsWith("/") ? value : `${parentOf(file)}/${value}`}/.git`);
}

/** git runs hooks from the one, and copies them from the other into repositories that it makes. */
const hookKeys = new Set(["core.hookspath", "init.templatedir"]);

/** A relative path means another directory in each worktree. */
function hookPaths(settings: readonly FileSetting[], tops: readonly string[], home: string): readonly string[] {
  const written = settings
    .filter(({ section, key, value }) => value !== "" && hookKeys.has(`${section}.${key}`))
    .map(({ value }) => value);
  return [...new Set(written.flatMap((value) => tops.map((top) => withCalled(pathOf(value, top, home)))))];
}

/** husky's `.husky/_` does nothing but call what lies beside it. */
function withCalled(directory: string): string {
  return directory.replace(/(\/\.husky)\/_\/*$/, "$1");
}

/** Settings that are commands: filters, drivers, helpers, editors, and what git calls on the other end. */
const commandKeys =
  /(?:command|cmd|program|helper|fsmonitor|editor|pager|askpass|gitproxy|external|textconv|clean|smudge|process|driver|receivepack|uploadpack|hook|filter|tunnel|smtpserver)$/;

/** Here each key is the name of a tool or command, and `path` says where a tool lies. */
const commandSections = new Set(["pager", "difftool", "mergetool", "browser", "man"]);

/** As many words of a command are looked at. */
const mostWords = 64;

/** Files that commands of the configuration name, as far as a look at their words can tell. */
function programs(settings: readonly FileSetting[], tops: readonly string[], home: string): readonly string[] {
  const commands = settings.filter(
    ({ section, key, value }) => value.startsWith("!") || commandKeys.test(key) || commandSections.has(section),
  );
  return [...new Set(commands.flatMap(({ value }) => wordsOf(value).flatMap((word) => wordPaths(word, tops, home))))];
}

/**
 * Any of them may be a program or a script, whatever its name ends in: `sh tools/clean`, `!f() { ./tools/f; }; f`. Only
 * the first one is looked up on PATH if it has no slash.
 */
function wordsOf(command: string): readonly string[] {
  const words = command.split(/[\s"'`;|&()<>$={}!]+/).filter((word) => word !== "");
  return words
    .slice(0, mostWords)
    .filter((word, at) => (at > 0 || word.includes("/")) && !/^(?:-|~[^/]|\.{1,2}$)/.test(word));
}

function wordPaths(word: string, tops: readonly string[], home: string): readonly string[] {
  if (word.startsWith("~/")) return [`${home}/${word.slice(2)}`];
  return word.startsWith("/") ? [word] : tops.map((top) => `${top}/${word}`);
}
