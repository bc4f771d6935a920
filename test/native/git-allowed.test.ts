import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { encodeTable, runInBox } from "./box.ts";
import { buildPrograms, makeRandom, makeScratch, ordinary, sanitized } from "./programs.ts";
import { gitTargets, makeRepository, type Outcome, type Repository } from "./repository.ts";

/** Each must do behind the shim exactly what it does without it. */
const allowed: readonly string[] = [
  "git status",
  "git",
  "git --version",
  "git --exec-path",
  "git checkout -h",
  "git nonsense",
  "git log -- checkout",
  "git log --oneline -n 1 --force-color 2>/dev/null || git log -n1",
  "git diff --stat && git show HEAD:a.txt",
  "git grep -n five side",
  // commit, with values that look like the blocked option
  "git commit -q -a -m x",
  "git commit -qa -mname",
  "git commit -qam name -mnext",
  'git commit -qam "checkout --force"',
  "git commit -qam 'git commit --no-verify -n'",
  "git commit -qa -m -n",
  "git commit -qa -m --no-verify",
  "git commit -qa --message -n",
  "git commit -qa --mess --no-verify",
  "git commit -qa --message=-n",
  "echo text >n; git commit -qa -F n",
  "echo text >n; git commit -qaFn",
  "git tag n; git commit -qa -C n",
  "git tag n; git commit -qaCn",
  "git commit -qa --author 'n <n@n>' -m x",
  "git commit -qam x -uno",
  "git commit -qa -uno -m x --date 2020-01-01T00:00:00Z",
  "git commit -qa --fixup HEAD --no-edit",
  "git commit -q -m x -- a.txt",
  "git commit -- -n",
  "git commit -q --amend --no-edit -a",
  "git cm -q -a -m x",
  // branches
  "git branch new && git branch --list",
  "git branch -d merged",
  "git branch -d side",
  "git branch -m side other",
  "git branch -c side other",
  "git branch -vv --contains HEAD~1 --sort -refname",
  "git branch -u origin/main && git branch -r",
  "git stash -q && git switch -q side",
  "git switch main",
  "git switch -c x",
  "git switch -q -cf",
  "git switch -q --create x HEAD~1 --merge",
  "git switch -q -d HEAD",
  "git update-ref refs/heads/new HEAD~1",
  "git symbolic-ref HEAD",
  "git tag v1 && git tag -l",
  // stash, rebase, merge and the like, which call git again with blocked forms
  "git stash -q",
  "git stash list && git stash show",
  "git stash push -q -m pop",
  "git stash -q -m pop",
  "git stash -q -u",
  "git stash -q -- a.txt",
  "git stash -q && git stash apply -q",
  "git stash -q --keep-index && git stash branch other",
  "git stash -q; git rebase -q side",
  "git rebase -q --autostash side",
  "git rebase -q --autostash -x 'git status' side",
  "git rebase -q --autostash -x 'echo git' -s recursive side",
  "git merge -q --autostash -m --no-verify side",
  "git commit -qam x && git merge -q side",
  "git commit -qam x && git merge -q -s resolve side",
  "git commit -qam x && git switch -qc y HEAD~1 && echo y >y && git add y && git commit -qm y && git merge -q main side",
  "git commit -qam x && git merge -q -s ours -n side",
  "git commit -qam x && git cherry-pick side",
  "git cherry-pick -n side",
  "git revert --no-edit HEAD",
  "git stash -q; git format-patch --stdout side~1..side | git am -q",
  "git bisect start -q HEAD HEAD~2 && git bisect run true; git bisect reset",
  "git pull -q --ff-only",
  "git stash -q; git pull -q --rebase",
  "git worktree add -q ../tree side && git worktree list && git worktree remove ../tree",
  "git -c protocol.file.allow=always submodule --quiet add ../origin.git sub && git submodule --quiet foreach git status && git submodule update -q --init",
  "git gc -q && git gc -q --prune && git reflog && git maintenance run --quiet",
  "printf '#!/bin/sh\\ngit stash -q --keep-index && git stash pop -q\\n' >.git/hooks/pre-commit && chmod +x .git/hooks/pre-commit && git commit -qam x",
  // remotes, where git is called by its dashed names
  "git push -q origin main",
  "git push -q -u origin main --tags",
  "git push -q origin HEAD:refs/heads/new",
  "git push --dry-run && git push -n --no-force origin main",
  "git push origin :",
  "git push -q --recurse-submodules check origin main",
  "git fetch -q --all --prune",
  "git clone -q . ../clone && ls ../clone",
  "git clone -q --no-local --depth 1 ../origin.git ../clone && git -C ../clone log --oneline",
  "git archive --remote=../origin.git main >/dev/null",
  "git ls-remote ../origin.git",
  // index and files
  "git clean -n",
  "git clean -nd -e f",
  "git clean -nx --exclude -f",
  "git reset -q",
  "git reset --soft HEAD~1",
  "git reset -q --mixed HEAD~1",
  "git add a.txt && git reset -q HEAD -- a.txt",
  "git reset -- --hard",
  "git reset --merge",
  "git rm -q b.txt",
  "git rm -q -r --cached b.txt",
  "git rm -q b.txt -n",
  "git rm -- -f",
  "git read-tree HEAD~1",
  "git checkout-index --prefix=../clone/ -a",
  "git add -A && git mv b.txt e.txt && git write-tree",
  // configuration
  "git config user.nick x && git config --get alias.co",
  "git -c user.name=checkout -c core.pager=cat commit -qam x",
  "git -c aliases.x=1 -c core.hooksPathology=1 status",
  "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=user.name GIT_CONFIG_VALUE_0=alias.x git commit -qam x",
  `GIT_CONFIG_PARAMETERS="'user.name'='x'" git commit -qam x`,
  "GIT_CONFIG_GLOBAL=/dev/null git status; GIT_CONFIG_SYSTEM= git status",
  // aliases
  "git st",
  "git ST -uno",
  "git harmless",
  "git loop",
  'cd / && git -C "$OLDPWD" st',
];

const scratch = makeScratch(afterAll);
let expected: Outcome[];
let repository: Repository;
beforeAll(async () => {
  buildPrograms();
  repository = makeRepository(scratch);
  expected = await repository.runEach(allowed, "fresh");
});

describe("the @git preset", () => {
  /** The sanitized build runs those in which git calls git: all words are judged by the same code as the blocked. */
  const nested = /stash|rebase|merge|submodule|clone|hooks|harmless/;

  it.concurrent.each([
    { ...ordinary, fragments: allowed },
    { ...sanitized, fragments: allowed.filter((fragment) => nested.test(fragment)) },
  ])("lets everyday git do what it does without it ($build build)", async ({ shim, fragments }) => {
    const strip = ({ status, print }: Outcome) => ({ status, print });
    const outcomes = await repository.runEach(fragments, "fresh", shim);
    for (const [i, outcome] of outcomes.entries()) {
      const fragment = fragments[i] as string;
      const wanted = expected[allowed.indexOf(fragment)] as Outcome;
      expect(strip(outcome), `${fragment}\n${outcome.stderr}`).toEqual(strip(wanted));
    }
  });

  it("is compared with commands that mostly succeed", () => {
    expect(allowed.filter((_, i) => expected[i]?.status !== 0)).toEqual([
      "git",
      "git checkout -h",
      "git nonsense",
      "git commit -- -n",
      "git branch -d side",
      "git rm -- -f",
      "git loop",
    ]);
  });
});

describe("the @git preset, sanitized build", () => {
  const options = "-c -C -- - --= -m -x --exec=git --exec -nfd --force --h alias.x=y = + : ' \\ $(git".split(" ");
  const words = [
    ...options,
    "",
    "git rebase -x git",
    ..."git commit rebase submodule foreach bisect run push x".split(" "),
  ];
  const aliases = ["\0", "\n", " ", ...`' " \\ ! !git git x commit -n -c ; \` ( checkout -`.split(" ")];

  it("survives senseless words and aliases", async () => {
    const random = makeRandom(3);
    const pick = <T>(list: readonly T[]) => list[random(list.length)] as T;
    const quote = (word: string) => `'${word.replaceAll("'", "'\\''")}'`;
    const some = (list: readonly string[], most: number) => Array.from({ length: random(most) }, () => pick(list));
    const answer = join(scratch, "answer");
    writeFileSync(answer, `#!/bin/sh\ncase "$*" in *config\\ --get*) cat ${scratch}/alias;; esac\n`, { mode: 0o755 });
    const calls = [
      "git submodule foreach ".repeat(5000),
      `git bisect run ${"git commit ".repeat(2000)}`,
      `git x ${"y ".repeat(5000)}`,
      ...Array.from({ length: 200 }, () => {
        const alias = some(aliases, 12)
          .join(pick(["", " "]))
          .replaceAll("\0", "\\0");
        return `printf -- ${quote(alias)} >${scratch}/alias 2>/dev/null; git ${some(words, 8).map(quote).join(" ")}`;
      }),
      `head -c 10000 /dev/zero | tr '\\0' "'" >${scratch}/alias; git x`,
      `head -c 10000 /dev/urandom >${scratch}/alias; git x`,
      `yes '!git x;' | head -c 10000 >${scratch}/alias; git x`,
    ];
    const script = calls.map((call) => `${call} >/dev/null 2>&1; echo $?`).join("\n");
    const run = await runInBox(script, {
      scratch,
      shim: sanitized.shim,
      targets: gitTargets,
      table: encodeTable(gitTargets.map((target) => ({ target, command: "git", kind: "git", real: answer }))),
    });
    const statuses = run.stdout.trim().split("\n").map(Number);
    expect(statuses).toHaveLength(calls.length);
    expect(calls.filter((_, i) => ![0, 126].includes(statuses[i] ?? -1))).toEqual([]);
    expect(new Set(statuses)).toEqual(new Set([0, 126]));
  });
});
