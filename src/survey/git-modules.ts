import { PolicyError } from "../errors.ts";
import { readPlainFile } from "../machine/plain-file.ts";
import { parentOf } from "../policy/paths.ts";
import { parseGitConfig } from "./git-config.ts";
import { childDirectories, configAt, entriesOf, noteAt, readable, tooMany } from "./git-files.ts";
import { readGitlinks } from "./git-index.ts";
import { type Reader, statOf } from "./reader.ts";
import { findWay, refuseUnreadable } from "./way.ts";

/** A submodule or a linked worktree is half a dozen mounts. */
const mostPlaces = 400;

/** How many directories below `modules` are looked at. */
const mostDirectories = 5_000;

/** At each of them is looked for a repository. */
const mostGitlinks = 2_000;

/** No index is larger: that would be some three million files. */
const largestIndex = 512 << 20;

/** What a git directory keeps there is no submodule's, or is looked at when that is its turn. */
const gitsOwn = new Set([
  "objects",
  "refs",
  "logs",
  "hooks",
  "info",
  "branches",
  "remotes",
  "worktrees",
  "lfs",
  "modules",
]);

/** A part of a repository that has an index, a worktree or a configuration of its own. */
interface Part {
  readonly gitDir: string;
  /** Equal to `gitDir` but in linked worktrees. */
  readonly commonDir: string;
  /** Where its files lie; null where its configuration does not say. */
  readonly top: string | null;
}

export interface Parts {
  /** Git directories of submodules, wherever they lie. */
  readonly modules: readonly string[];
  readonly worktrees: readonly LinkedWorktree[];
  /** Where an index says that another repository lies, and whether there is one now. */
  readonly gitlinks: Readonly<Record<string, boolean>>;
  /** Those in which the git directory is no file that leads to it: without HEAD, git looks beside it. */
  readonly embedded: readonly string[];
  /** Where the files of submodules and linked worktrees lie. */
  readonly tops: readonly string[];
}

/**
 * Every part to which git goes on from a repository: linked worktrees, submodules that it keeps below `modules` at any
 * depth, submodules that have a git directory in themselves, as the index has it, and the same of each of these.
 */
export function findParts(root: string, gitDir: string, commonDir: string, reader: Reader): Parts {
  const modules = new Set<string>();
  const worktrees: LinkedWorktree[] = [];
  const gitlinks = new Map<string, boolean>();
  const embedded = new Set<string>();
  const tops = new Set<string>();
  const seen = new Set<string>();
  const budget = { left: mostDirectories };
  const ahead: Part[] = [
    { gitDir, commonDir, top: root },
    { gitDir: commonDir, commonDir, top: null },
  ];
  for (let part = ahead.shift(); part !== undefined; part = ahead.shift()) {
    if (seen.has(part.gitDir)) continue;
    seen.add(part.gitDir);
    if (part.top !== null && part.top !== root) tops.add(part.top);
    if (part.gitDir === part.commonDir) {
      if (part.gitDir !== commonDir) modules.add(part.gitDir);
      const linked = findWorktrees(part.commonDir);
      worktrees.push(...linked);
      ahead.push(...linked.map(({ directory, pointer }) => partOf(directory, part.commonDir, pointer)));
    }
    const kept = `${part.gitDir}/modules`;
    ahead.push(...modulesBelow(kept, kept, budget).map((path) => submoduleAt(path, reader)));
    for (const path of gitlinksIn(part)) {
      const found = repositoryIn(path, reader);
      gitlinks.set(path, found !== null);
      if (found === null) continue;
      ahead.push({ gitDir: found, commonDir: found, top: path });
      if (statOf(`${path}/.git`)?.isFile() !== true) embedded.add(path);
    }
    if (gitlinks.size > mostGitlinks) throw tooMany(`${part.gitDir}/index`, mostGitlinks, "submodules");
    if (modules.size > mostPlaces) throw tooMany(`${commonDir}/modules`, mostPlaces, "git directories of submodules");
  }
  return {
    modules: [...modules],
    worktrees,
    gitlinks: Object.fromEntries(gitlinks),
    embedded: [...embedded],
    tops: [...tops],
  };
}

function partOf(gitDir: string, commonDir: string, pointer: string | null): Part {
  return { gitDir, commonDir, top: pointer === null ? null : parentOf(pointer) };
}

function submoduleAt(gitDir: string, reader: Reader): Part {
  return { gitDir, commonDir: gitDir, top: topOf(gitDir, reader) };
}

function gitlinksIn({ gitDir, commonDir, top }: Part): readonly string[] {
  if (top === null) return [];
  const links = gitlinksOf(gitDir, commonDir).filter((link) => !link.split("/").includes(".."));
  for (const link of links) refuseUnreadable(link, `${gitDir}/index`);
  return links.map((link) => `${top}/${link}`);
}

interface LinkedWorktree {
  /** What git keeps of it. */
  readonly directory: string;
  /** The `.git` file that leads there. */
  readonly pointer: string | null;
}

function findWorktrees(commonDir: string): readonly LinkedWorktree[] {
  const directories = childDirectories(`${commonDir}/worktrees`);
  if (directories.length > mostPlaces) throw tooMany(`${commonDir}/worktrees`, mostPlaces, "linked worktrees");
  return directories.map((directory) => {
    // An agent can have a worktree of its own named here, and what is protected then must be a `.git`.
    const pointer = /^.*\/\.git(?=\n?$)/.exec(noteAt(`${directory}/gitdir`))?.[0] ?? "";
    refuseUnreadable(pointer, `${directory}/gitdir`);
    return {
      directory,
      pointer: pointer === "" ? null : pointer.startsWith("/") ? pointer : `${directory}/${pointer}`,
    };
  });
}

/**
 * Submodules may hold submodules: `modules/a/modules/b`, and names may hold slashes: `modules/libs/a`. An agent can
 * make `libs` look like a git directory, so what lies below one is looked at, too.
 */
function modulesBelow(directory: string, kept: string, budget: { left: number }): readonly string[] {
  budget.left -= 1;
  if (budget.left < 0) throw tooMany(kept, mostDirectories, "directories");
  const entries = entriesOf(directory);
  const isModule = directory !== kept && entries.some((entry) => isSignOfGit(entry));
  const below = entries
    .filter((entry) => entry.isDirectory() && !(isModule && gitsOwn.has(entry.name)))
    .map(({ name }) => `${directory}/${name}`)
    .sort()
    .flatMap((path) => modulesBelow(path, kept, budget));
  return isModule ? [directory, ...below] : below;
}

/** HEAD can be taken away inside and brought back; the configuration cannot. */
function isSignOfGit(entry: { readonly name: string; isDirectory(): boolean }): boolean {
  return entry.name === "HEAD" || (entry.name === "config" && !entry.isDirectory());
}

/** Where a submodule's files lie, by its own configuration. */
function topOf(gitDir: string, reader: Reader): string | null {
  const worktree = parseGitConfig(configAt(`${gitDir}/config`))
    .filter(({ section, key }) => section === "core" && key === "worktree")
    .at(-1)?.value;
  if (worktree === undefined) return null;
  return findWay(worktree.startsWith("/") ? worktree : `${gitDir}/${worktree}`, reader).end;
}

/** The paths, from the top of the worktree, at which the index has another repository. */
function gitlinksOf(gitDir: string, commonDir: string): readonly string[] {
  const shared = (readable(gitDir) ?? []).map(({ name }) => name).filter((name) => name.startsWith("sharedindex."));
  return ["index", ...shared].flatMap((name) => {
    const path = `${gitDir}/${name}`;
    const file = readPlainFile(path, largestIndex);
    if (file.kind === "absent") return [];
    const links = file.kind === "read" ? readGitlinks(file.bytes, hashBytes(commonDir)) : null;
    if (links !== null) return links;
    throw new PolicyError(
      "PATH_REFUSED",
      `${path} ${file.kind === "read" ? "is damaged" : "cannot be read"}, so what it says of submodules cannot be protected.`,
      {
        hint: "Move it away and have git write it anew (git reset), or switch git's protection off with --preset '!@git'.",
        details: { path },
      },
    );
  });
}

function hashBytes(commonDir: string): 20 | 32 {
  const settings = parseGitConfig(configAt(`${commonDir}/config`));
  return settings.some(({ key, value }) => key === "objectformat" && value.toLowerCase() === "sha256") ? 32 : 20;
}

/** The git directory of what lies at a gitlink. */
function repositoryIn(directory: string, reader: Reader): string | null {
  const entry = `${directory}/.git`;
  const target = statOf(entry)?.isFile() ? pointedTo(entry) : entry;
  const end = target === null ? null : findWay(target, reader).end;
  return end !== null && (readable(end) ?? []).some(isSignOfGit) ? end : null;
}

/** Where `.git` leads if it is a file: `gitdir: PATH`. */
export function pointedTo(file: string): string | null {
  const target = /^gitdir: (.+)$/m.exec(noteAt(file))?.[1]?.trimEnd();
  if (target === undefined) return null;
  refuseUnreadable(target, file);
  return target.startsWith("/") ? target : `${parentOf(file)}/${target}`;
}
