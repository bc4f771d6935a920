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

/** What a git directory keeps there is no submodule's. */
const gitsOwn = new Set(["objects", "refs", "logs", "hooks", "info", "branches", "remotes", "worktrees", "lfs"]);

export interface Modules {
  /** Git directories of submodules, wherever they lie. */
  readonly directories: readonly string[];
  /** Where the index says that another repository lies, whether or not there is one now. */
  readonly gitlinks: readonly string[];
  /** Where their files lie. */
  readonly tops: readonly string[];
}

/**
 * Every git directory that git goes on to from this one: those that it keeps below `modules`, at any depth, and those
 * that lie in a submodule's own directory, as the index has it.
 */
export function findModules(root: string, gitDir: string, commonDir: string, reader: Reader): Modules {
  const kept = `${commonDir}/modules`;
  const budget = { left: mostDirectories };
  const directories = new Set(modulesBelow(kept, kept, budget));
  const gitlinks = new Set<string>();
  const tops = new Set<string>();
  const kin = (path: string) => ({ gitDir: path, commonDir: path, top: topOf(path, reader) });
  const ahead: { gitDir: string; commonDir: string; top: string | null }[] = [
    { gitDir, commonDir, top: root },
    ...[...directories].map(kin),
  ];
  for (let next = ahead.shift(); next !== undefined; next = ahead.shift()) {
    if (next.top === null) continue;
    if (next.gitDir !== gitDir) tops.add(next.top);
    for (const link of gitlinksOf(next.gitDir, next.commonDir)) {
      const path = `${next.top}/${link}`;
      refuseUnreadable(path, `${next.gitDir}/index`);
      if (gitlinks.has(path) || link.split("/").includes("..")) continue;
      gitlinks.add(path);
      if (gitlinks.size > mostGitlinks) throw tooMany(`${next.gitDir}/index`, mostGitlinks, "submodules");
      const found = repositoryIn(path, reader);
      if (found === null || directories.has(found)) continue;
      directories.add(found);
      for (const below of modulesBelow(`${found}/modules`, `${found}/modules`, budget)) {
        directories.add(below);
        ahead.push(kin(below));
      }
      ahead.push({ gitDir: found, commonDir: found, top: path });
    }
    if (directories.size > mostPlaces) throw tooMany(kept, mostPlaces, "git directories of submodules");
  }
  return { directories: [...directories], gitlinks: [...gitlinks], tops: [...tops] };
}

/** Linked worktrees of a git directory: what it keeps of each, and the `.git` file that leads there. */
export function findWorktrees(
  commonDir: string,
): readonly { readonly directory: string; readonly pointer: string | null }[] {
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
export function gitlinksOf(gitDir: string, commonDir: string): readonly string[] {
  const shared = (readable(gitDir) ?? []).map(({ name }) => name).filter((name) => name.startsWith("sharedindex."));
  return ["index", ...shared].flatMap((name) => {
    const path = `${gitDir}/${name}`;
    const file = readPlainFile(path, largestIndex);
    if (file.kind === "absent") return [];
    if (file.kind === "read") return readGitlinks(file.bytes, hashBytes(commonDir));
    throw new PolicyError(
      "PATH_REFUSED",
      `${path} cannot be read, so what it says of submodules cannot be protected.`,
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
