import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { PolicyError } from "../errors.ts";
import type { GitLayout } from "../policy/git.ts";
import { parentOf } from "../policy/paths.ts";
import { type GitSetting, parseGitConfig } from "./git-config.ts";
import { kindOf, Reader, statOf } from "./reader.ts";

/** A repository with more than this many refs or submodules is beyond what a list of mounts can hold. */
const mostEntries = 2_000;

export interface GitQuestion {
  readonly cwd: string;
  readonly home: string;
  readonly uid: number;
  readonly strict: boolean;
}

/** The repository around a directory, found as git finds it: upwards. */
export function findGit(question: GitQuestion, reader: Reader): GitLayout | null {
  for (let at = question.cwd; ; at = parentOf(at)) {
    const layout = layoutAt(at, question, reader);
    if (layout !== null || at === "/") return layout;
  }
}

/** Where the repository around a directory is cloned from, by its own settings. Nothing that they say is executed. */
export function readOrigin(question: Omit<GitQuestion, "strict">): string | null {
  const layout = findGit({ ...question, strict: false }, new Reader());
  // A project may say that it belongs to any other; git itself obeys no settings of another user's.
  if (layout?.pointsBack !== true) return null;
  const origin = parseGitConfig(textOf(join(layout.commonDir, "config"))).find(
    ({ section, subsection, key }) => section === "remote" && subsection === "origin" && key === "url",
  );
  return origin?.value ?? null;
}

function layoutAt(root: string, question: GitQuestion, reader: Reader): GitLayout | null {
  const entry = entryAt(root, question.cwd);
  if (entry === null) return null;
  const gitDir = entry.kind === "file" ? pointedTo(entry.path, root, reader) : reader.resolve(entry.path);
  const commonDir = gitDir === null ? null : commonOf(gitDir, reader);
  if (gitDir === null || commonDir === null) return unlessHere(entry.path, root, question);
  const modules = submodules(join(commonDir, "modules"), 0);
  const places = [...new Set([commonDir, gitDir, ...modules])];
  const settings = readSettings(places, question.home);
  const hookDirectories = findHookDirectories(root, settings, question.home, reader);
  return {
    entry,
    gitDir,
    commonDir,
    pointsBack: pointsBack(entry, root, gitDir, commonDir, question.uid, reader),
    modules,
    worktrees: childDirectories(join(commonDir, "worktrees")),
    obeyed: obeyedFiles(places, hookDirectories, settings, question.home, reader),
    hookDirectories,
    branch: /^ref: (.+)$/m.exec(textOf(join(gitDir, "HEAD")))?.[1]?.trim() ?? null,
    heads: question.strict ? looseHeads(commonDir) : [],
  };
}

/** A bare repository is its own git directory; above, it is nobody's. */
function entryAt(root: string, cwd: string): GitLayout["entry"] | null {
  const path = join(root, ".git");
  const stats = statOf(path);
  if (stats !== null) {
    const kind = kindOf(stats);
    return kind === "file" || kind === "directory" || kind === "link" ? { path, kind } : null;
  }
  const bare = root === cwd && ["HEAD", "objects", "refs"].every((name) => statOf(join(root, name)) !== null);
  return bare ? { path: root, kind: "directory" } : null;
}

/** What looks unlike git now can be made to look like it again, inside: to pass it over would be to fail open. */
function unlessHere(path: string, root: string, { cwd }: GitQuestion): null {
  if (root !== cwd || path === root || isEmptyDirectory(path)) return null;
  throw new PolicyError("PATH_REFUSED", `${path} is there, but is no git directory that can be read and protected.`, {
    hint: "Repair it (its mode, its HEAD, what it points to), or switch its protection off with --preset '!@git'.",
    details: { path },
  });
}

function isEmptyDirectory(path: string): boolean {
  return statOf(path)?.isDirectory() === true && readable(path)?.length === 0;
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

/**
 * Whether the far end agrees that this is its worktree. A plain `.git` above does by lying there; a linked worktree's
 * directory lies in the repository and names our `.git` file; a submodule's directory names our worktree. A link or a
 * `commondir` of the project's own choosing proves nothing.
 */
function pointsBack(
  entry: GitLayout["entry"],
  root: string,
  gitDir: string,
  commonDir: string,
  uid: number,
  reader: Reader,
): boolean {
  if (statOf(commonDir)?.uid !== uid || statOf(gitDir)?.uid !== uid) return false;
  if (entry.kind === "directory") return gitDir === commonDir;
  if (entry.kind === "link") return false;
  if (parentOf(gitDir) === `${commonDir}/worktrees`) {
    const back = textOf(join(gitDir, "gitdir")).trim();
    return back !== "" && reader.resolve(resolve(gitDir, back)) === entry.path;
  }
  const worktree = parseGitConfig(textOf(join(gitDir, "config")))
    .filter(({ section, key }) => section === "core" && key === "worktree")
    .at(-1)?.value;
  return gitDir === commonDir && worktree !== undefined && reader.resolve(resolve(gitDir, worktree)) === root;
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

type FileSetting = GitSetting & { readonly file: string };

/** Everything that git would read as configuration here, with the file that says it. */
function readSettings(places: readonly string[], home: string): readonly FileSetting[] {
  const files = [
    ...places.flatMap((place) => [join(place, "config"), join(place, "config.worktree")]),
    join(home, ".gitconfig"),
    join(home, ".config/git/config"),
  ];
  return files.flatMap((file) => parseGitConfig(textOf(file)).map((setting) => ({ ...setting, file })));
}

/** Files besides git's own that git obeys: what configurations include, submodules' `.git`, what hooks link to. */
function obeyedFiles(
  places: readonly string[],
  hookDirectories: readonly string[],
  settings: readonly FileSetting[],
  home: string,
  reader: Reader,
): readonly string[] {
  const included = settings
    .filter(({ section, key }) => (section === "include" || section === "includeif") && key === "path")
    .map(({ value, file }) => fromHome(value, parentOf(file), home));
  const pointers = settings
    .filter(({ section, key }) => section === "core" && key === "worktree")
    .map(({ value, file }) => join(resolve(parentOf(file), value), ".git"));
  const linked = [...hookDirectories, ...places.map((place) => join(place, "hooks"))].flatMap((directory) =>
    entriesOf(directory)
      .filter((entry) => entry.isSymbolicLink())
      .flatMap((entry) => reader.resolve(join(directory, entry.name)) ?? []),
  );
  return [...new Set([...included, ...pointers, ...linked].map((path) => reader.resolve(path) ?? path))];
}

/** git runs hooks at the top of the worktree, so that is what a relative path means. */
function findHookDirectories(
  root: string,
  settings: readonly FileSetting[],
  home: string,
  reader: Reader,
): readonly string[] {
  const directories = settings
    .filter(({ section, key }) => section === "core" && key === "hookspath")
    .map(({ value }) => withCalled(fromHome(value, root, home)));
  return [...new Set(directories.map((path) => reader.resolve(path) ?? path))];
}

/** husky's `.husky/_` does nothing but call what lies beside it. */
function withCalled(directory: string): string {
  return directory.endsWith("/.husky/_") ? parentOf(directory) : directory;
}

function fromHome(written: string, from: string, home: string): string {
  return written.startsWith("~/") ? join(home, written.slice(2)) : resolve(from, written);
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
  const entries = readable(directory) ?? [];
  if (entries.length <= mostEntries) return entries;
  throw new PolicyError("PATH_REFUSED", `${directory} holds more than ${mostEntries} entries, too many to protect.`, {
    hint: "Pack the refs (git pack-refs --all), or switch the preset off.",
  });
}

function readable(directory: string) {
  try {
    return statOf(directory) === null ? null : readdirSync(directory, { withFileTypes: true });
  } catch {
    return null;
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
