import type { GitSight, Plan } from "../plan/plan.ts";
import { isHead } from "../survey/git-bare.ts";
import { lookAgain } from "../survey/git-look.ts";
import { findParts } from "../survey/git-modules.ts";
import { Reader, statOf } from "../survey/reader.ts";

/** More of a kind than this say no more. */
const mostNamed = 5;

/** What became of the repository while an agent worked in it, and which others are there now. */
export function gitAftermath({ cwd, git }: Pick<Plan, "cwd" | "git">): readonly string[] {
  if (git === null) return [];
  return [lostRepository, newGitlinks, newRepositories].flatMap((tell) => {
    try {
      return tell(git, cwd);
    } catch (error) {
      // The run is over, and its end must be told whatever was left behind.
      return [
        `What became of git in ${cwd} cannot be seen. ${(error as Error).message} Look before you use git there.`,
      ];
    }
  });
}

/** Where git does not find the repository any more, it looks for another: beside it, then above. */
function lostRepository({ own, embedded }: GitSight): readonly string[] {
  if (own === null) return [];
  const { entry, gitDir, commonDir } = own;
  const isShared = commonDir !== gitDir && !isWhole(commonDir, commonDir);
  const below = embedded.map((top) => `${top}/.git`).filter((path) => !isWhole(path, path));
  const lost = [...(isWhole(gitDir, commonDir) ? [] : [entry]), ...(isShared ? [commonDir] : []), ...below];
  return named(
    lost,
    (path) =>
      `${path} is no git repository any more: git would take another for it. Do not use git here before you have repaired its HEAD, objects and refs.`,
  );
}

function isWhole(gitDir: string, commonDir: string): boolean {
  return isHead(`${gitDir}/HEAD`) && ["objects", "refs"].every((name) => isDirectory(`${commonDir}/${name}`));
}

function isDirectory(path: string): boolean {
  return statOf(path)?.isDirectory() === true;
}

/** Submodules are filled inside as outside, so the wall does not keep repositories away from where they belong. */
function newGitlinks({ own, gitlinks }: GitSight): readonly string[] {
  if (own === null) return [];
  const now = Object.entries(findParts(own.top, own.gitDir, own.commonDir, new Reader()).gitlinks);
  return [
    ...named(
      now.flatMap(([path]) => (Object.hasOwn(gitlinks, path) ? [] : [path])),
      (path) =>
        `${path} was added to the index as another repository: git status looks into it, and executes what its configuration names. \`git rm -f --cached ${path}\` takes it out.`,
    ),
    ...named(
      now.flatMap(([path, isThere]) => (isThere && gitlinks[path] === false ? [path] : [])),
      (path) =>
        `${path} is a submodule that got its repository during the run: git status looks into it, and executes what its configuration names. Review that, or remove ${path}/.git, before you use git here.`,
    ),
  ];
}

function newRepositories({ repositories, gitlinks }: GitSight, cwd: string): readonly string[] {
  if (repositories === null) return [];
  const found = lookAgain(cwd, repositories);
  if (found === null) {
    return [
      `${cwd} has got so many directories that repositories among them cannot be seen. Look before you use git there: find . -name .git -o -name HEAD`,
    ];
  }
  return named(
    // What was a submodule before has been told.
    found.filter((path) => !repositories.paths.includes(path) && gitlinks[path] !== false),
    (path) =>
      `${path} became a git repository during the run: git executes what its configuration and hooks name. Review or remove it before you use git there.`,
  );
}

function named(paths: readonly string[], say: (path: string) => string): readonly string[] {
  const more = paths.length - mostNamed;
  return [...paths.slice(0, mostNamed).map(say), ...(more > 0 ? [`And ${more} more repositories like that.`] : [])];
}
