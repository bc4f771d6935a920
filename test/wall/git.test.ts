// @module-tag security
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { newWorld, type World } from "../world.ts";

/** A normal day's work with git. */
const day = [
  "echo two >> file.txt",
  "git add file.txt",
  "git commit -qm second",
  "echo three >> file.txt",
  "git stash -q",
  "git stash apply -q",
  "git commit -qam third",
  "git branch topic HEAD~1",
  "git switch -q topic",
  "echo other > other.txt",
  "git add other.txt",
  "git commit -qm other",
  "git rebase -q main",
  "git log --oneline",
].join(" && ");

function expectDay(outcome: { readonly status: number; readonly stdout: string; readonly stderr: string }): void {
  expect(outcome.stderr).toBe("");
  expect(outcome.status).toBe(0);
  expect(
    outcome.stdout
      .trim()
      .split("\n")
      .map((line) => line.split(" ").at(-1)),
  ).toEqual(["other", "third", "second", "first"]);
}

/** What git obeys or executes must be as it was, whatever a script tried. */
async function expectUnchanged(world: World, gitDir: string, script: string, ...flags: string[]): Promise<void> {
  const before = snapshot(gitDir);
  await world.inside(script, ...flags);
  expect(snapshot(gitDir), script).toEqual(before);
}

function snapshot(gitDir: string): Record<string, string> {
  const read = (name: string) => (existsSync(join(gitDir, name)) ? readFileSync(join(gitDir, name), "utf8") : "absent");
  const hooks = join(gitDir, "hooks");
  return {
    config: read("config"),
    worktree: read("config.worktree"),
    commondir: read("commondir"),
    hooks: existsSync(hooks) ? readdirSync(hooks).join() : "absent",
  };
}

const attacks = (gitDir: string) => [
  `echo evil > ${gitDir}/hooks/pre-commit`,
  `mkdir -p ${gitDir}/hooks; echo evil > ${gitDir}/hooks/post-checkout; chmod +x ${gitDir}/hooks/post-checkout`,
  `rm -rf ${gitDir}/hooks; mkdir ${gitDir}/hooks; echo evil > ${gitDir}/hooks/pre-commit`,
  `mv ${gitDir}/hooks ${gitDir}/h2; cp -r ${gitDir}/h2 ${gitDir}/hooks; echo evil > ${gitDir}/hooks/pre-commit`,
  `printf '[core]\\n\\tfsmonitor = evil\\n' >> ${gitDir}/config`,
  `git config core.hooksPath /tmp/evil`,
  `mv ${gitDir}/config ${gitDir}/c2; echo evil > ${gitDir}/config`,
  `cp ${gitDir}/config ${gitDir}/config.lock && mv ${gitDir}/config.lock ${gitDir}/config`,
  `printf '[core]\\n\\tsshCommand = evil\\n' > ${gitDir}/config.worktree`,
  `echo /tmp/evil > ${gitDir}/commondir`,
  `mv ${gitDir} ${gitDir}x; cp -r ${gitDir}x ${gitDir}; echo evil > ${gitDir}/hooks/pre-commit`,
];

describe("in a repository", () => {
  test("a day's work goes as outside, and leaves no trace of Podbot", async () => {
    const world = newWorld().repository();
    expectDay(await world.inside(day));
    expect(existsSync(join(world.project, ".git/commondir"))).toBe(false);
    expect(existsSync(join(world.project, ".git/config.worktree"))).toBe(false);
    expect(world.git("status", "--short")).toBe("");
  });

  test("hooks and configuration can be changed by no trick, though outside each would do", async () => {
    const world = newWorld().repository();
    for (const attack of attacks(".git")) await expectUnchanged(world, join(world.project, ".git"), attack);
    const control = newWorld().repository();
    const before = snapshot(join(control.project, ".git"));
    control.outside(attacks(".git")[0] as string);
    expect(snapshot(join(control.project, ".git"))).not.toEqual(before);
  });

  test("missing hooks cannot be made, and are missing again afterwards", async () => {
    const world = newWorld().repository();
    world.outside("rm -rf .git/hooks");
    await expectUnchanged(world, join(world.project, ".git"), attacks(".git")[1] as string);
    expect(existsSync(join(world.project, ".git/hooks"))).toBe(false);
  });

  test("hooks elsewhere, by core.hooksPath, are kept too", async () => {
    const world = newWorld().repository();
    world.git("config", "core.hooksPath", ".husky/_");
    const { status } = await world.inside("mkdir -p .husky/_ && echo evil > .husky/_/pre-commit");
    expect(status).not.toBe(0);
    expect(existsSync(join(world.project, ".husky"))).toBe(false);
    world.file("home/project/.husky/_/pre-commit", "mine\n");
    expect((await world.inside("echo evil > .husky/_/pre-commit || mv .husky h")).status).not.toBe(0);
  });

  test("hooks that are called by the hooks, as husky has it, and files that the configuration includes", async () => {
    const world = newWorld().repository();
    world.git("config", "core.hooksPath", ".husky/_");
    world.git("config", "include.path", "../shared.gitconfig");
    world.file("home/project/.husky/pre-commit", "mine\n");
    world.file("home/project/shared.gitconfig", "[core]\n");
    for (const attack of ["echo evil > .husky/pre-commit", "echo evil > shared.gitconfig", "rm -f shared.gitconfig"]) {
      expect((await world.inside(attack)).status, attack).not.toBe(0);
    }
  });

  test("linked worktrees elsewhere cannot be turned against the owner", async () => {
    const world = newWorld().repository();
    world.git("worktree", "add", "-q", join(world.home, "other"), "-b", "other");
    const own = join(world.project, ".git/worktrees/other");
    const attacks = [
      "echo /tmp/evil > .git/worktrees/other/commondir",
      "echo x > .git/worktrees/other/config.worktree",
      "mv .git/worktrees/other .git/worktrees/o",
    ];
    for (const attack of attacks) await expectUnchanged(world, own, attack);
    expect(existsSync(own)).toBe(true);
  });

  test("which is bare is protected the same way", async () => {
    const world = newWorld();
    world.git("init", "-q", "--bare", ".");
    for (const attack of attacks(".").slice(0, 10)) await expectUnchanged(world, world.project, attack);
  });

  test("submodules are protected like the repository itself", async () => {
    const world = newWorld().repository();
    const other = newWorld().repository();
    world.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other.project, "libs/sub");
    world.git("commit", "-qm", "submodule");
    const gitDir = join(world.project, ".git/modules/libs/sub");
    expect(existsSync(join(gitDir, "config"))).toBe(true);
    for (const attack of attacks(".git/modules/libs/sub")) await expectUnchanged(world, gitDir, attack);
    const { status } = await world.inside("cd libs/sub && echo x > y && git add y && git commit -qm sub");
    expect(status).toBe(0);
  });
});

describe("in a subdirectory of a repository", () => {
  test("git works on the repository above, whose hooks stay as they are", async () => {
    const world = newWorld().repository();
    mkdirSync(join(world.project, "sub"));
    const flags = ["-C", join(world.project, "sub")];
    const { status, stderr } = await world.inside(
      "echo x > y && git add y && git commit -qm sub && git stash list",
      ...flags,
    );
    expect(stderr).toBe("");
    expect(status).toBe(0);
    for (const attack of attacks("../.git"))
      await expectUnchanged(world, join(world.project, ".git"), attack, ...flags);
    expect((await world.inside("echo x > ../file.txt", ...flags)).status).not.toBe(0);
  });
});

describe("in a linked worktree", () => {
  test("git works, and neither its own nor the main directory can be turned against the owner", async () => {
    const world = newWorld().repository();
    const worktree = join(world.home, "worktree");
    world.git("worktree", "add", "-q", worktree, "-b", "linked");
    const flags = ["-C", worktree];
    expectDay(await world.inside(day.replaceAll("main", "linked"), ...flags));
    const main = join(world.project, ".git");
    for (const attack of attacks(main)) await expectUnchanged(world, main, attack, ...flags);
    const own = join(main, "worktrees/worktree");
    for (const attack of attacks(own).slice(8)) await expectUnchanged(world, own, attack, ...flags);
    expect((await world.inside("rm -f .git; echo 'gitdir: /tmp/evil' > .git", ...flags)).status).not.toBe(0);
    expect(readFileSync(join(worktree, ".git"), "utf8")).toContain(own);
  });

  test("a .git file that points where nobody points back opens nothing", async () => {
    const victim = newWorld().repository();
    const world = newWorld();
    world.file("home/project/.git", `gitdir: ${victim.project}/.git\n`);
    const { stderr } = await world.inside(`touch ${victim.project}/.git/index.lock`);
    expect(stderr).toContain("does not point back, so it stays read-only");
    expect(existsSync(join(victim.project, ".git/index.lock"))).toBe(false);
  });
});

describe("with .git as a link", () => {
  test("git works where the owner names what it leads to, and hooks are kept", async () => {
    const world = newWorld().repository();
    world.outside("mv .git ../elsewhere && ln -s ../elsewhere .git");
    const refused = await world.inside("git commit --allow-empty -qm x");
    expect(refused.status).not.toBe(0);
    expect(refused.stderr).toContain("does not point back, so it stays read-only");
    expectDay(await world.inside(day, "--quiet", "--rw", "../elsewhere"));
    for (const attack of attacks("../elsewhere")) {
      await expectUnchanged(world, join(world.home, "elsewhere"), attack, "--rw", "../elsewhere");
    }
  });
});

describe("with a link to what git obeys", () => {
  test("neither the link nor what it leads to can be replaced", async () => {
    const world = newWorld().repository();
    world.outside("mv .git/hooks ../hooks && ln -s ../../hooks .git/hooks");
    const { stderr } = await world.inside("rm .git/hooks; mkdir .git/hooks; echo evil > .git/hooks/pre-commit");
    expect(stderr).toContain("rm: cannot remove '.git/hooks': Device or resource busy");
    expect(stderr).not.toContain("podbot:");
    expect((await world.inside("echo evil > ../hooks/pre-commit")).status).not.toBe(0);
    expect(world.outside("readlink .git/hooks; ls ../hooks | grep -vc sample").stdout).toBe("../../hooks\n0\n");
  });
});

describe("@git-strict", () => {
  test("leaves only the current branch to be written, by tool and by file", async () => {
    const world = newWorld().repository();
    world.git("branch", "other");
    world.git("branch", "feature/x");
    world.git("tag", "v1");
    const refs = () => world.git("for-each-ref", "refs/heads/other", "refs/heads/feature", "refs/tags");
    const before = refs();
    const strict = ["--preset", "@git-strict"];
    expect((await world.inside("echo two >> file.txt && git commit -qam second", ...strict)).status).toBe(0);
    const attempts = [
      "/usr/bin/git branch -f other HEAD",
      "/usr/bin/git update-ref refs/heads/other HEAD",
      "/usr/bin/git tag -f v1 HEAD",
      "/usr/bin/git tag -d v1",
      "/usr/bin/git pack-refs --all --prune",
      "git rev-parse HEAD > .git/refs/heads/other",
      "rm -f .git/refs/heads/other",
      "rm -rf .git/refs/heads/feature",
      "git rev-parse HEAD > .git/refs/tags/v1",
      "mv .git/refs/heads .git/refs/h && mkdir .git/refs/heads",
      "mv .git/refs .git/r",
      "echo $(git rev-parse HEAD) refs/tags/v9 > .git/packed-refs",
    ];
    for (const attempt of attempts) {
      await world.inside(attempt, ...strict);
      expect(refs(), attempt).toBe(before);
    }
    expect(existsSync(join(world.project, ".git/packed-refs"))).toBe(false);
    expect((await world.inside("git rev-parse HEAD > .git/refs/heads/other")).status).toBe(0);
    expect(refs()).not.toBe(before);
  });

  test("keeps every branch where HEAD is detached", async () => {
    const world = newWorld().repository();
    world.git("switch", "-q", "--detach");
    const { status } = await world.inside("echo x > .git/refs/heads/main", "--preset", "@git-strict");
    expect(status).not.toBe(0);
  });
});
