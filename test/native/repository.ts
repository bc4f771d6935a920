import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type CommandRecord, encodeTable, runInBox } from "./box.ts";
import { environment } from "./programs.ts";

const real = "/run/podbot/real/git";
const execPath = execFileSync("git", ["--exec-path"], { encoding: "utf8" }).trim();
const installed = realpathSync(execFileSync("sh", ["-c", "command -v git"], { encoding: "utf8" }).trim());

/** Every file that is git: the one on PATH and, where it is another, the one that git itself calls. */
export const gitTargets = [...new Set([installed, realpathSync(join(execPath, "git"))])];
const gitRecords: readonly CommandRecord[] = gitTargets.map((target) => ({
  target,
  command: "git",
  kind: "git",
  real,
}));

/** `git-checkout` and its like are links to git on some systems, and absent on others. */
export const dashedCheckout = join(execPath, "git-checkout");
export const hasDashedLinks = existsSync(dashedCheckout) && gitTargets.includes(realpathSync(dashedCheckout));

/** The same hash for the same commit, whoever makes it when; and no ten seconds of warning. */
const settings = {
  GIT_AUTHOR_DATE: "2030-01-01T00:00:00Z",
  GIT_COMMITTER_DATE: "2030-01-01T00:00:00Z",
  FILTER_BRANCH_SQUELCH_WARNING: "1",
};

const config = `
[user]
  name = Somebody
  email = somebody@example.org
[init]
  defaultBranch = main
[advice]
  detachedHead = false
[alias]
  co = checkout
  deep = co
  quoted = "checkout 'a.txt'"
  paged = -p checkout
  rh = reset --hard
  cm = commit
  st = status --short
  discard = !git checkout .
  hidden = "!sh -c 'git reset --hard'"
  function = "!f() { git status && git checkout \\"$@\\"; }; f"
  harmless = "!git status --short && git log --oneline"
  loop = loop
`;

/**
 * work/ has changes, an untracked file and a stash; `side` and `main` have diverged, `merged` is part of main; work/
 * is one commit ahead of origin.git, which also has `old`.
 */
const construction = `
set -e
git init -q --template= --bare ../origin.git
git init -q --template= .
mkdir .git/hooks
for name in a b c; do seq 20 >$name.txt; done
git add . && git commit -q -m first
git branch old
seq 21 >b.txt && git commit -q -a -m second
git remote add origin ../origin.git
git push -q -u origin main old
git branch merged
git branch side
sed -i s/^15$/fifteen/ c.txt && git commit -q -a -m third
git switch -q side
sed -i s/^5$/five/ c.txt && echo new >d.txt && git add d.txt && git commit -q -a -m aside
git switch -q main
echo stashed >>b.txt && git stash -q
git gc -q
echo changed >>a.txt
echo untracked >u.txt
`;

/**
 * The copies lie in the box's own memory and go with it. The fingerprint is what can be lost: files, index, references
 * here and there, stashes, where HEAD is.
 */
const driver = `
fingerprint() {
  ${real} status --porcelain -uall
  grep -r . .git/refs .git/packed-refs ../origin.git/refs | sort
  cat .git/HEAD .git/logs/refs/stash
  cksum * ../clone/*
}
number=0
while [ -e "$CASES/$number" ]; do
  copy=/run/copy-$([ "$COPIES" = shared ] || echo $number)
  [ -e $copy ] || cp -r "$TEMPLATE" $copy
  cd $copy/work
  sh "$CASES/$number" >"$CASES/$number.stdout" 2>"$CASES/$number.stderr" </dev/null
  echo $? >"$CASES/$number.status"
  [ "$COPIES" = shared ] || fingerprint >"$CASES/$number.print" 2>&1
  number=$((number + 1))
done
fingerprint >"$CASES/print" 2>&1
exit 0
`;

export interface Outcome {
  readonly status: number;
  readonly stderr: string;
  /** The state of the copy afterwards: after this fragment, or if they share one, after the last. */
  readonly print: string;
}

export interface Repository {
  /** Runs each shell fragment in a copy of work/, with or without the shim in git's place. */
  runEach(fragments: readonly string[], copies: "fresh" | "shared", shim?: string): Promise<Outcome[]>;
}

export function makeRepository(scratch: string): Repository {
  const [template, home] = [join(scratch, "template"), join(scratch, "home")];
  const work = join(template, "work");
  mkdirSync(work, { recursive: true });
  mkdirSync(home);
  writeFileSync(join(home, ".gitconfig"), config);
  const env = { ...environment, ...settings, HOME: home };
  execFileSync("sh", ["-c", construction], { cwd: work, env, stdio: ["ignore", "ignore", "inherit"] });
  return {
    async runEach(fragments, copies, shim) {
      const cases = mkdtempSync(join(scratch, "cases-"));
      fragments.forEach((fragment, i) => {
        writeFileSync(join(cases, String(i)), fragment);
      });
      const run = await runInBox(driver, {
        scratch,
        ...(shim === undefined ? {} : { shim }),
        targets: gitTargets,
        table: encodeTable(gitRecords),
        files: { [installed]: real },
        env: { ...settings, HOME: home, CASES: cases, COPIES: copies, TEMPLATE: template },
      });
      if (run.status !== 0) throw new Error(`the driver failed: ${run.stderr}`);
      const read = (name: string) => readFileSync(join(cases, name), "utf8");
      return fragments.map((_, i) => ({
        status: Number(read(`${i}.status`)),
        stderr: read(`${i}.stderr`),
        print: read(copies === "shared" ? "print" : `${i}.print`),
      }));
    },
  };
}
