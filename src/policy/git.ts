import { directoriesBetween, isBelow, isWithin, parentOf } from "./paths.ts";
import type { Access, Placeholder } from "./rule.ts";

/** How git keeps the repository around the working directory; all paths are resolved. */
export interface GitLayout {
  /** Where `.git` lies and what it is there: its directory, a file that points to it, or a link. */
  readonly entry: { readonly path: string; readonly kind: "directory" | "file" | "link" };
  readonly gitDir: string;
  /** Equal to `gitDir` but in linked worktrees. */
  readonly commonDir: string;
  /**
   * Whether the far end agrees that this is its worktree. A `.git` file or link is part of the project and may be
   * hostile: what it names outside the working directory is made writable only if this holds.
   */
  readonly pointsBack: boolean;
  /** Git directories of submodules: below `modules/`, or in the submodule itself. */
  readonly modules: readonly string[];
  /** Directories of all linked worktrees, below `worktrees/`. */
  readonly worktrees: readonly string[];
  /** Files elsewhere that git obeys: what configurations include or call, `.git` files, what hooks link to. */
  readonly obeyed: readonly string[];
  /** Hook directories that the configuration names (`core.hooksPath`), as husky does. */
  readonly hookDirectories: readonly string[];
  /** Names that would be obeyed if they came into being: what is included and missing, and what makes a bare repository. */
  readonly absent: readonly Held[];
  /** Links and directories that git passes on its way to what it obeys, and where each leads ("": nowhere). */
  readonly steps: Readonly<Record<string, string>>;
  /** Directories at which an index has another repository's commit, and whether there is a repository now. */
  readonly gitlinks: Readonly<Record<string, boolean>>;
  /** Those whose git directory lies in themselves. */
  readonly embedded: readonly string[];
  /** The branch that HEAD names, or null when it is detached. */
  readonly branch: string | null;
  /** Every file and directory below `refs/heads`, relative to it. */
  readonly heads: readonly string[];
}

export interface Held {
  readonly path: string;
  readonly placeholder: Placeholder;
}

export interface GitRule {
  readonly access: Access;
  readonly path: string;
  readonly placeholder?: Placeholder;
}

const directory: Placeholder = { kind: "directory" };
const emptyFile: Placeholder = { kind: "file", content: "" };

/**
 * `commondir` says where the shared part of a repository lies. Missing, an agent could create it and lend git a
 * configuration of its own. An empty one would break git, but "." says what its absence says.
 */
const samePlace: Placeholder = { kind: "file", content: ".\n" };

/** Configurations that git reads for every repository. Those that a variable names take the place of others; no matter. */
export function commonConfigs(home: string, env: Readonly<Record<string, string | undefined>>): readonly string[] {
  const xdg = env["XDG_CONFIG_HOME"] || `${home}/.config`;
  const named = [env["GIT_CONFIG_SYSTEM"], env["GIT_CONFIG_GLOBAL"]].filter((path) => path?.startsWith("/"));
  const usual = [
    "/etc/gitconfig",
    "/usr/local/etc/gitconfig",
    `${home}/.gitconfig`,
    `${home}/.config/git/config`,
    `${xdg}/git/config`,
  ];
  return [...new Set([...usual, ...(named as string[])])].filter((path) => path.startsWith("/"));
}

/** The rules by which `@git` and `@git-strict` keep what git executes or obeys. */
export function gitRules(layout: GitLayout, cwd: string, strict: boolean): readonly GitRule[] {
  const { commonDir, gitDir, entry, modules, worktrees, hookDirectories } = layout;
  const places = [...new Set([commonDir, gitDir])];
  return [
    ...places.filter((place) => reachesOut(place, layout, cwd)).map((path): GitRule => ({ access: "rw", path })),
    ...(entry.kind === "file" ? [{ access: "ro" as const, path: entry.path }] : []),
    ...[...new Set([commonDir, ...modules])].flatMap((place) => obeyed(place)),
    ...[...new Set([...places.slice(1), ...worktrees])].flatMap((place) => obeyedByWorktree(place)),
    ...layout.obeyed.map((path): GitRule => ({ access: "ro", path })),
    ...(isBelow(cwd, parentOf(entry.path))
      ? [cwd, ...directoriesBetween(parentOf(entry.path), cwd)].map(noSecondRepository)
      : []),
    ...layout.absent.map((held): GitRule => ({ access: "ro", ...held })),
    ...hookDirectories.map((path): GitRule => ({ access: "ro", path, placeholder: directory })),
    ...(strict ? strictRules(layout) : []),
  ];
}

/** In a subdirectory, a `.git` of the agent's own would take the place of the one above. Empty, git passes it over. */
function noSecondRepository(below: string): GitRule {
  return { access: "ro", path: `${below}/.git`, placeholder: directory };
}

/** A linked worktree has hooks and configuration in common with the others; where that lies, and what it adds, is its own. */
function obeyedByWorktree(place: string): readonly GitRule[] {
  return [
    { access: "ro", path: `${place}/commondir`, placeholder: { kind: "file", content: "../..\n" } },
    { access: "ro", path: `${place}/config.worktree`, placeholder: emptyFile },
    { access: "ro", path: `${place}/gitdir` },
  ];
}

/** From a subdirectory or a linked worktree, git must still write its own directory, which lies elsewhere. */
function reachesOut(place: string, layout: GitLayout, cwd: string): boolean {
  return layout.pointsBack && !isWithin(place, cwd);
}

function obeyed(place: string): readonly GitRule[] {
  return [
    { access: "ro", path: `${place}/hooks`, placeholder: directory },
    { access: "ro", path: `${place}/config`, placeholder: emptyFile },
    { access: "ro", path: `${place}/config.worktree`, placeholder: emptyFile },
    { access: "ro", path: `${place}/commondir`, placeholder: samePlace },
    // Where git looks for a remote that the configuration does not have.
    { access: "ro", path: `${place}/remotes`, placeholder: directory },
    { access: "ro", path: `${place}/branches`, placeholder: directory },
  ];
}

function strictRules({ commonDir, branch, heads }: GitLayout): readonly GitRule[] {
  const current = branch?.startsWith("refs/heads/") ? branch.slice("refs/heads/".length) : null;
  const others = heads.filter((head) => current === null || !isWithin(current, head));
  return [
    ...others.map((head): GitRule => ({ access: "ro", path: `${commonDir}/refs/heads/${head}` })),
    { access: "ro", path: `${commonDir}/refs/tags`, placeholder: directory },
    { access: "ro", path: `${commonDir}/packed-refs`, placeholder: emptyFile },
  ];
}
