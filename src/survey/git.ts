import { join, resolve } from "node:path";
import { PolicyError } from "../errors.ts";
import type { GitLayout } from "../policy/git.ts";
import { parentOf } from "../policy/paths.ts";
import { bareNames, heldAgainstBare, isBare, isEmptyDirectory } from "./git-bare.ts";
import { parseGitConfig } from "./git-config.ts";
import { configAt, entriesOf, noteAt, tooMany } from "./git-files.ts";
import { findParts, pointedTo } from "./git-modules.ts";
import { findObeyed } from "./git-obeyed.ts";
import { kindOf, Reader, statOf } from "./reader.ts";
import { findWay, refuseUnreadable } from "./way.ts";

/** A repository with more loose refs than this is beyond what a list of mounts can hold. */
const mostHeads = 2_000;

export interface GitQuestion {
  readonly cwd: string;
  readonly home: string;
  readonly uid: number;
  readonly strict: boolean;
  /** Configurations that git reads besides the repository's own. */
  readonly configs: readonly string[];
}

/** The repository around a directory, found as git finds it: upwards. */
export function findGit(question: GitQuestion, reader: Reader): GitLayout | null {
  for (let at = question.cwd; ; at = parentOf(at)) {
    const layout = layoutAt(at, question, reader);
    if (layout !== null || at === "/") return layout;
  }
}

/** Where the repository around a directory is cloned from, by its own settings. Nothing that they say is executed. */
export function readOrigin(question: Pick<GitQuestion, "cwd" | "home" | "uid">): string | null {
  const layout = findGit({ ...question, strict: false, configs: [] }, new Reader());
  // A project may say that it belongs to any other; git itself obeys no settings of another user's.
  if (layout?.pointsBack !== true) return null;
  const origin = parseGitConfig(configAt(join(layout.commonDir, "config"))).find(
    ({ section, subsection, key }) => section === "remote" && subsection === "origin" && key === "url",
  );
  return origin?.value ?? null;
}

function layoutAt(root: string, question: GitQuestion, reader: Reader): GitLayout | null {
  const entry = entryAt(root, question);
  if (entry === null) return null;
  const target = entry.kind === "file" ? pointedTo(entry.path) : entry.path;
  const gitDir = target === null ? null : findWay(target, reader).end;
  const commonDir = gitDir === null ? null : commonOf(gitDir, reader);
  if (gitDir === null || commonDir === null) return unlessHere(entry.path, root, question);
  const parts = findParts(root, gitDir, commonDir, reader);
  const { worktrees: linked } = parts;
  const places = [...new Set([commonDir, gitDir, ...parts.modules])];
  const pointers = linked.flatMap(({ pointer }) => pointer ?? []);
  const obeyed = findObeyed(
    {
      cwd: question.cwd,
      home: question.home,
      tops: [root, ...parts.tops],
      places,
      worktrees: linked.map(({ directory }) => directory),
      configs: question.configs,
      pointers: [...pointers, ...Object.keys(parts.gitlinks).map((path) => `${path}/.git`)],
    },
    reader,
  );
  return {
    entry,
    gitDir,
    commonDir,
    pointsBack: pointsBack(entry, root, gitDir, commonDir, question.uid, reader),
    modules: parts.modules,
    worktrees: linked.map(({ directory }) => directory),
    obeyed: obeyed.files,
    hookDirectories: obeyed.hookDirectories,
    absent: [
      ...obeyed.absent,
      ...bareNames({ root, entry, cwd: question.cwd, gitDirs: [commonDir, gitDir] }, reader),
      ...parts.embedded.flatMap((top) => heldAgainstBare(top, reader)),
    ],
    steps: { ...obeyed.steps, ...(entry.kind === "link" ? { [entry.path]: gitDir } : {}) },
    gitlinks: parts.gitlinks,
    embedded: parts.embedded,
    branch: /^ref: (.+)$/m.exec(noteAt(`${gitDir}/HEAD`))?.[1]?.trim() ?? null,
    heads: question.strict ? looseHeads(commonDir) : [],
  };
}

/** A bare repository counts only in the working directory itself. An empty `.git` is none, and git looks beside it. */
function entryAt(root: string, question: GitQuestion): GitLayout["entry"] | null {
  const path = join(root, ".git");
  const stats = statOf(path);
  if (root === question.cwd && (stats === null || isEmptyDirectory(path)) && isBare(root)) {
    return { path: root, kind: "directory" };
  }
  if (stats === null) return null;
  const kind = kindOf(stats);
  if (kind === "file" || kind === "directory" || kind === "link") return { path, kind };
  return unlessHere(path, root, question);
}

/** What looks unlike git now can be made to look like it again, inside: to pass it over would be to fail open. */
function unlessHere(path: string, root: string, { cwd }: GitQuestion): null {
  if (root !== cwd || path === root || isEmptyDirectory(path)) return null;
  throw new PolicyError("PATH_REFUSED", `${path} is there, but is no git directory that can be read and protected.`, {
    hint: "Repair it (its mode, its HEAD, what it points to), or switch its protection off with --preset '!@git'.",
    details: { path },
  });
}

/** Only what looks like a git directory counts as one. */
function commonOf(gitDir: string, reader: Reader): string | null {
  if (statOf(join(gitDir, "HEAD")) === null) return null;
  const shared = noteAt(join(gitDir, "commondir")).trim();
  refuseUnreadable(shared, join(gitDir, "commondir"));
  const commonDir =
    shared === "" ? gitDir : findWay(shared.startsWith("/") ? shared : `${gitDir}/${shared}`, reader).end;
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
    const back = noteAt(join(gitDir, "gitdir")).trim();
    return back !== "" && reader.resolve(resolve(gitDir, back)) === entry.path;
  }
  const worktree = parseGitConfig(configAt(join(gitDir, "config")))
    .filter(({ section, key }) => section === "core" && key === "worktree")
    .at(-1)?.value;
  return gitDir === commonDir && worktree !== undefined && reader.resolve(resolve(gitDir, worktree)) === root;
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
  const heads = join(commonDir, "refs/heads");
  return names(heads, "", { left: mostHeads });
}

/** Every file and directory below, as relative paths. */
function names(heads: string, prefix: string, budget: { left: number }): readonly string[] {
  return entriesOf(join(heads, prefix)).flatMap((entry) => {
    budget.left -= 1;
    if (budget.left < 0) throw tooMany(heads, mostHeads, "branches");
    const name = `${prefix}${entry.name}`;
    return entry.isDirectory() ? [name, ...names(heads, `${name}/`, budget)] : [name];
  });
}
