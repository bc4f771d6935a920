// @module-tag security
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildPrograms, makeScratch, ordinary, sanitized } from "./programs.ts";
import { dashedCheckout, hasDashedLinks, makeRepository, type Repository } from "./repository.ts";

/** Forms that git accepts, so that only the preset stands between them and the repository. */
const accepted: readonly string[] = [
  // checkout and restore, in every form and behind every global option
  "git checkout .",
  "git checkout -- a.txt",
  "git checkout -b x",
  "git checkout side",
  "git -C . checkout .",
  'cd / && git -C "$OLDPWD" checkout .',
  "git -c user.name=x checkout .",
  "git --git-dir=.git --work-tree=. checkout .",
  "git --git-dir .git --work-tree . checkout .",
  "git --namespace x --no-pager -P checkout .",
  "git --literal-pathspecs --no-replace-objects --no-optional-locks checkout a.txt",
  "git --config-env=user.name=HOME checkout .",
  "git --config-env user.name=HOME checkout .",
  'git --exec-path="$(git --exec-path)" checkout .',
  '"$(command -v git)" checkout .',
  "env git checkout .",
  "git restore a.txt",
  "git restore --staged --worktree .",
  ...(hasDashedLinks ? [`${dashedCheckout} .`] : []),
  // reset, clean
  "git reset --hard",
  "git reset --har",
  "git reset --h",
  "git reset -q --hard HEAD~1",
  "git reset HEAD~1 --hard",
  "git clean -f",
  "git clean -fd",
  "git clean -xdf",
  "git clean -d -f .",
  "git clean --force",
  "git clean --forc -q",
  "git clean -e pattern -f",
  "git clean -ndf",
  "echo c | git clean -i",
  // hooks
  "git commit -n -a -m x",
  "git commit -anm x",
  "git commit -a -m x -n",
  "git commit -am x --no-verify",
  "git commit -am x --no-verif",
  "git commit -vna -m x",
  "git commit --amend --no-edit -qn",
  "git commit --author 'x <x@x>' -n -a -m x",
  "git merge --no-verify side",
  "git rebase --no-verify side",
  "git push --no-verify origin main",
  "git pull --no-verify",
  // stashes
  "git stash drop",
  "git stash drop stash@{0}",
  "git stash clear",
  "git stash pop",
  "git stash pop --index",
  // branches and references
  "git branch -D side",
  "git branch -d -f side",
  "git branch -df side",
  "git branch -fd side",
  "git branch --delete --force side",
  "git branch side --force --delete",
  "git branch -M side old",
  "git branch -C side old",
  "git branch -f side HEAD",
  "git branch -qD side",
  "git switch --discard-changes side",
  "git switch --disc side",
  "git switch -f side",
  "git switch -qf side",
  "git switch --force side",
  "git switch -C side",
  "git switch --force-create=side",
  "git update-ref -d refs/heads/side",
  "git update-ref -m reason -d refs/heads/side",
  "echo delete refs/heads/side | git update-ref --stdin",
  "echo delete refs/heads/side | git update-ref --s",
  "git symbolic-ref -d HEAD",
  "git symbolic-ref --delete HEAD",
  "git reflog expire --expire=now --all",
  "git reflog delete HEAD@{0}",
  "git gc --prune=now",
  "git gc --prun=all -q",
  "git prune",
  "git filter-branch --msg-filter cat HEAD",
  // index and files
  "git checkout-index -f -a",
  "git checkout-index -fa",
  "git checkout-index --force a.txt",
  "git read-tree -u -m HEAD",
  "git read-tree -mu HEAD",
  "git read-tree --reset HEAD",
  "git read-tree --rese -u HEAD",
  "git rm -f a.txt",
  "git rm -rf .",
  "git rm --force a.txt",
  "git worktree remove -f ../tree",
  "git worktree remove ../tree --force",
  // what others have pushed
  "git push --force origin main",
  "git push -f origin main",
  "git push -uf origin main",
  "git push origin main -f",
  "git push --force-with-lease origin main",
  "git push --force-with-lease=main origin main",
  "git push --force-w origin main",
  "git push origin +main",
  "git push origin +HEAD:main",
  "git push origin -- +main",
  "git push origin :old",
  "git push origin main :old",
  "git push --delete origin old",
  "git push -d origin old",
  "git push origin --del old",
  "git push --mirror",
  "git push --mi origin",
  "git push --prune origin",
  "git send-pack --force ../origin.git side:main",
  "git send-pack ../origin.git +side:main",
  // configuration for one call
  "git -c alias.x=status x",
  "git -c ALIAS.x=status x",
  "git -c alias.x='!git checkout .' x",
  "git -c core.hooksPath=/dev/null commit -a -m x",
  "git -c CORE.HOOKSPATH=/dev/null commit -a -m x",
  "git -c user.name=x -c include.path=/dev/null status",
  "git -c includeIf.gitdir:/.path=/dev/null status",
  "git -c clean.requireForce=false clean -d",
  "git -c help.autocorrect=immediate chekout .",
  "X=status git --config-env=alias.x=X x",
  "X=status git --config-env alias.x=X x",
  "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0=status git x",
  "GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=user.name GIT_CONFIG_VALUE_0=x GIT_CONFIG_KEY_1=Core.HooksPath GIT_CONFIG_VALUE_1=/ git status",
  `GIT_CONFIG_PARAMETERS="'user.name'='x' 'alias.x'='status'" git x`,
  `GIT_CONFIG_PARAMETERS="'alias.x=status'" git x`,
  'GIT_CONFIG_GLOBAL="$HOME/.gitconfig" git status',
  'GIT_CONFIG_SYSTEM="$HOME/.gitconfig" git status',
  // aliases
  "git co .",
  "git deep .",
  "git quoted",
  "git paged .",
  "git rh",
  "git cm -n -a -m x",
  "git discard",
  "git hidden",
  "git function .",
  "git CO .",
  "git co . <&- >&-",
  'cd / && git -C "$OLDPWD" co .',
  "git config alias.local 'checkout .' && git local",
  // commands that run commands
  "git rebase --autostash -x 'git checkout .' HEAD~1",
  "git rebase --autostash -x'true && git stash drop' HEAD~1",
  "git rebase --autostash --exec='git reset --hard' HEAD~1",
  "git rebase --autostash --exe 'git reset --hard' HEAD~1",
  "git submodule foreach git checkout .",
  "git submodule foreach --recursive 'git reset --hard; true'",
  "git submodule --quiet foreach 'git clean -xfd'",
  "git bisect run git checkout .",
  "git bisect run sh -c 'git reset --hard'",
];

/** Forms that this git refuses as ambiguous or unknown; another version may not. */
const refusedAnyway: readonly string[] = [
  "git commit -a -m x --no-v",
  "git branch --delete --f side",
  "git push --forc origin main",
  "git push --d origin old",
  "git switch --d side",
  "git am --no-verify /dev/null",
  "git reset --hard=x",
  "git stash -q pop",
];

const blocked = [...accepted, ...refusedAnyway];

const scratch = makeScratch(afterAll);
let repository: Repository;
beforeAll(() => {
  buildPrograms();
  repository = makeRepository(scratch);
}, 120_000);

describe("the @git preset", () => {
  it.concurrent.each([ordinary, sanitized])("blocks every dangerous form ($build build)", async ({ shim }) => {
    const [untouched] = await repository.runEach(["true"], "fresh");
    const outcomes = await repository.runEach(blocked, "shared", shim);
    expect(blocked.filter((_, i) => outcomes[i]?.status !== 126)).toEqual([]);
    for (const [i, { stderr }] of outcomes.entries()) {
      expect(stderr, blocked[i]).toMatch(/^podbot: git \S.* is blocked by the @git preset: \S.*\. \S.*\.\n$/);
    }
    expect(outcomes.at(-1)?.print).toBe(untouched?.print);
  });

  it.concurrent("stands in front of a git that accepts them", async () => {
    const outcomes = await repository.runEach(accepted, "fresh");
    expect(accepted.filter((_, i) => outcomes[i]?.status === 129)).toEqual([]);
  });

  it.concurrent("stands in front of a git that does what is blocked", async () => {
    const harmful = [
      "git checkout .",
      "git reset --hard",
      "git clean -xdf",
      "git stash pop",
      "git branch -D side",
      "git push -d origin old",
    ];
    const [untouched, ...outcomes] = await repository.runEach(["true", ...harmful], "fresh");
    for (const [i, { status, print }] of outcomes.entries()) {
      expect(status, harmful[i]).toBe(0);
      expect(print, harmful[i]).not.toBe(untouched?.print);
    }
  });

  it("names the form, the danger and the way out", async () => {
    const fragments = [
      "git -C . reset -q --hard",
      "git co .",
      "git push origin +main",
      "git stash pop",
      "git worktree remove -qf x",
    ];
    const messages = await repository.runEach(fragments, "shared", ordinary.shim);
    expect(messages.map(({ stderr }) => stderr)).toEqual([
      "podbot: git reset --hard is blocked by the @git preset: it overwrites or removes work that is not committed. Put the changes aside with git stash, or commit them first.\n",
      "podbot: git checkout is blocked by the @git preset: it overwrites or removes work that is not committed. Use git switch for branches (-c creates one), and git show REVISION:FILE to read an older version.\n",
      "podbot: git push +main is blocked by the @git preset: it can overwrite or delete what others have pushed. Push without it, to a new branch if the remote one has moved.\n",
      "podbot: git stash pop is blocked by the @git preset: it deletes the stash that it applies. Use git stash apply, which keeps it.\n",
      "podbot: git worktree remove -f is blocked by the @git preset: it overwrites or removes work that is not committed. Put the changes aside with git stash, or commit them first.\n",
    ]);
  });
});
