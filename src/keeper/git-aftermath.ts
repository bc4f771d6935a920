import type { GitSight, Plan } from "../plan/plan.ts";
import { isHead } from "../survey/git-bare.ts";
import { lookForRepositories } from "../survey/git-look.ts";
import { gitlinksOf } from "../survey/git-modules.ts";
import { statOf } from "../survey/reader.ts";

/** More of a kind than this say no more. */
const mostNamed = 5;

/** What became of the repository while an agent worked in it, and which others are there now. */
export function gitAftermath({ cwd, git }: Pick<Plan, "cwd" | "git">): readonly string[] {
  if (git === null) return [];
  try {
    return [...lostRepository(git), ...newGitlinks(git), ...newRepositories(cwd, git)];
  } catch (error) {
    // The run is over, and its end must be told whatever was left behind.
    return [`What became of git in ${cwd} cannot be seen (${(error as Error).message}) Look before you use it there.`];
  }
}

/** Where git does not find the repository any more, it looks for another: beside it, then above. */
function lostRepository({ own }: GitSight): readonly string[] {
  if (own === null) return [];
  const { entry, gitDir, commonDir } = own;
  const isShared = commonDir !== gitDir && !isWhole(commonDir, commonDir);
  const lost = [...(isWhole(gitDir, commonDir) ? [] : [entry]), ...(isShared ? [commonDir] : [])];
  return lost.map(
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

function newGitlinks({ own, gitlinks }: GitSight): readonly string[] {
  if (own === null) return [];
  return named(
    gitlinksNow(own).filter((path) => !gitlinks.includes(path)),
    (path) =>
      `${path} was added to the index as another repository: git status looks into it, and executes what its configuration names. \`git rm --cached ${path}\` takes it out.`,
  );
}

function gitlinksNow({ top, gitDir, commonDir }: NonNullable<GitSight["own"]>): readonly string[] {
  try {
    return gitlinksOf(gitDir, commonDir).map((path) => `${top}/${path}`);
  } catch {
    // What git itself cannot read, it does not obey; the next start names it.
    return [];
  }
}

function newRepositories(cwd: string, { repositories }: GitSight): readonly string[] {
  if (repositories === null) return [];
  return named(
    lookForRepositories(cwd, repositories.depth).paths.filter((path) => !repositories.paths.includes(path)),
    (path) =>
      `${path} became a git repository during the run: git executes what its configuration and hooks name. Review or remove it before you use git there.`,
  );
}

function named(paths: readonly string[], say: (path: string) => string): readonly string[] {
  const more = paths.length - mostNamed;
  return [...paths.slice(0, mostNamed).map(say), ...(more > 0 ? [`And ${more} more repositories like that.`] : [])];
}
