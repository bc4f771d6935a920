import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { PolicyError } from "../errors.ts";
import type { GitLayout } from "../policy/git.ts";
import { parentOf } from "../policy/paths.ts";
import { kindOf, type Reader, statOf } from "./reader.ts";

/** A repository with more than this many refs or submodules is beyond what a list of mounts can hold. */
const mostEntries = 2_000;

/** The repository around a directory, found as git finds it: upwards. */
export function findGit(cwd: string, home: string, strict: boolean, reader: Reader): GitLayout | null {
  for (let at = cwd; ; at = parentOf(at)) {
    const layout = layoutAt(at, home, strict, reader);
    if (layout !== null || at === "/") return layout;
  }
}

function layoutAt(root: string, home: string, strict: boolean, reader: Reader): GitLayout | null {
  const dotGit = join(root, ".git");
  const stats = statOf(dotGit);
  // A bare repository is its own git directory.
  const path = stats === null ? root : dotGit;
  const kind = stats === null ? "directory" : kindOf(stats);
  const gitDir = kind === "file" ? pointedTo(path, root, reader) : reader.resolve(path);
  if (gitDir === null || (kind !== "file" && kind !== "directory" && kind !== "link")) return null;
  const commonDir = commonOf(gitDir, reader);
  if (commonDir === null) return null;
  const modules = submodules(join(commonDir, "modules"), 0);
  const settings = readSettings(root, home, [commonDir, gitDir, ...modules], reader);
  return {
    entry: { path, kind },
    gitDir,
    commonDir,
    pointsBack: pointsBack(path, root, gitDir, commonDir, reader),
    modules,
    worktrees: childDirectories(join(commonDir, "worktrees")),
    included: settings.included,
    hookDirectories: settings.hookDirectories,
    branch: /^ref: (.+)$/m.exec(textOf(join(gitDir, "HEAD")))?.[1]?.trim() ?? null,
    heads: strict ? looseHeads(commonDir) : [],
  };
}

/** `.git` as a file: `gitdir: PATH`. */
function pointedTo(file: string, root: string, reader: Reader): string | null {
  const target = /^gitdir: (.+)$/m.exec(textOf(file))?.[1]?.trim();
  return target === undefined ? null : reader.resolve(resolve(root, target));
}

/** Only what looks like a git directory counts as one. */
function commonOf(gitDir: string, reader: Reader): string | null {
  if (statOf(join(gitDir, "HEAD")) === null) return null;
  const shared = textOf(join(gitDir, "commondir")).trim();
  const commonDir = shared === "" ? gitDir : reader.resolve(resolve(gitDir, shared));
  if (commonDir === null || !statOf(join(commonDir, "objects"))?.isDirectory()) return null;
  return statOf(join(commonDir, "refs"))?.isDirectory() ? commonDir : null;
}

/** A linked worktree's directory names its `.git` file; a submodule's names its worktree. */
function pointsBack(entry: string, root: string, gitDir: string, commonDir: string, reader: Reader): boolean {
  const back = textOf(join(gitDir, "gitdir")).trim();
  if (back !== "" && gitDir.startsWith(`${commonDir}/worktrees/`)) {
    return reader.resolve(resolve(gitDir, back)) === reader.resolve(entry);
  }
  const worktree = settingsOf(textOf(join(gitDir, "config")), "core", "worktree").at(-1);
  return worktree !== undefined && reader.resolve(resolve(gitDir, worktree)) === root;
}

/** Submodules may hold submodules: `modules/a/modules/b`, and names may hold slashes: `modules/libs/a`. */
function submodules(directory: string, depth: number): readonly string[] {
  if (depth > 6) return [];
  return childDirectories(directory).flatMap((path) =>
    statOf(join(path, "HEAD")) === null
      ? submodules(path, depth + 1)
      : [path, ...submodules(join(path, "modules"), depth + 1)],
  );
}

function childDirectories(directory: string): readonly string[] {
  return entriesOf(directory)
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(directory, entry.name))
    .sort();
}

/** What configuration files lead to: hooks elsewhere, and further files. */
function readSettings(
  root: string,
  home: string,
  places: readonly string[],
  reader: Reader,
): Pick<GitLayout, "included" | "hookDirectories"> {
  const files = [
    ...new Set(places.flatMap((place) => [join(place, "config"), join(place, "config.worktree")])),
    join(home, ".gitconfig"),
    join(home, ".config/git/config"),
  ];
  const included: string[] = [];
  const hooks: string[] = [];
  for (const file of files) {
    const text = textOf(file);
    // git runs hooks at the top of the worktree, so that is what a relative path means there.
    for (const written of settingsOf(text, "core", "hookspath"))
      hooks.push(...withParents(fromHome(written, root, home)));
    for (const section of ["include", "includeif"]) {
      for (const written of settingsOf(text, section, "path")) included.push(fromHome(written, parentOf(file), home));
    }
  }
  const resolved = (paths: readonly string[]) => [...new Set(paths.map((path) => reader.resolve(path) ?? path))];
  return { included: resolved(included), hookDirectories: resolved(hooks) };
}

function fromHome(written: string, from: string, home: string): string {
  return written.startsWith("~/") ? join(home, written.slice(2)) : resolve(from, written);
}

/** husky's `.husky/_` does nothing but call what lies beside it. */
function withParents(directory: string): readonly string[] {
  return directory.endsWith("/.husky/_") ? [parentOf(directory)] : [directory];
}

/** The values of a key, as git's own writer spells it, in every section of a name (with or without a subsection). */
function settingsOf(config: string, section: string, key: string): readonly string[] {
  const values: string[] = [];
  let at = "";
  for (const line of config.split("\n")) {
    const header = /^\s*\[\s*([^\]"\s]+)/.exec(line);
    if (header) at = (header[1] as string).toLowerCase();
    const pair = /^\s*(?:\[[^\]]*\])?\s*([A-Za-z][A-Za-z0-9-]*)\s*=\s*(.*?)\s*$/.exec(line);
    if (at === section && pair && (pair[1] as string).toLowerCase() === key) {
      values.push((pair[2] as string).replace(/^"(.*)"$/, "$1"));
    }
  }
  return values;
}

function looseHeads(commonDir: string): readonly string[] {
  if (statOf(join(commonDir, "reftable")) !== null) {
    throw new PolicyError(
      "PATH_REFUSED",
      `${commonDir} keeps its refs in a reftable, which @git-strict cannot protect.`,
      {
        hint: "Switch it off with !@git-strict, or migrate the repository: git refs migrate --ref-format=files.",
      },
    );
  }
  return names(join(commonDir, "refs/heads"));
}

/** Every file and directory below, as relative paths. */
function names(directory: string, prefix = ""): readonly string[] {
  return entriesOf(directory).flatMap((entry) => {
    const name = `${prefix}${entry.name}`;
    return entry.isDirectory() ? [name, ...names(join(directory, entry.name), `${name}/`)] : [name];
  });
}

function entriesOf(directory: string) {
  const entries = readable(directory);
  if (entries.length <= mostEntries) return entries;
  throw new PolicyError("PATH_REFUSED", `${directory} holds more than ${mostEntries} entries, too many to protect.`, {
    hint: "Pack the refs (git pack-refs --all), or switch the preset off.",
  });
}

function readable(directory: string) {
  try {
    return readdirSync(directory, { withFileTypes: true });
  } catch {
    return [];
  }
}

/** Files of git's are small; a huge one is not git's. */
function textOf(path: string): string {
  const stats = statOf(path);
  if (!stats?.isFile() || stats.size > 1 << 20) return "";
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
