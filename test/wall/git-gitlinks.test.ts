// @module-tag security
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { newWorld, type World } from "../world.ts";

/** Made by whatever the agent's words have the owner's git execute. */
const markOf = (world: World) => join(world.directory, "executed");
const withMark = (world: World, script: string) => `MARK=${markOf(world)}; ${script}`;

/** A monitor that git asks at each look at the worktree. */
const monitor = '"[core]\\n\\tfsmonitor = \\"touch $MARK; false\\"\\n"';
const armed = (directory: string) =>
  `git init -q ${directory}; (cd ${directory}; echo x > x; git add x; git commit -qm x); printf ${monitor} >> ${directory}/.git/config`;

/** A project as it comes from a clone without its submodules: the index names one, and its directory is empty. */
function empty(world: World, path: string): void {
  const { project } = newWorld().repository();
  world.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", project, path);
  world.git("commit", "-qm", "submodule");
  world.outside(`git submodule --quiet deinit -f ${path}; rm -rf .git/modules`);
}

function embed(world: World): void {
  world.outside("git clone -q . lib");
  world.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "./lib", "lib");
  world.git("commit", "-qm", "submodule");
}

interface Case {
  readonly prepare: (world: World) => void;
  readonly script: string;
  /** What the owner does then. */
  readonly owner?: string;
}

function prepared({ prepare }: Case): World {
  const world = newWorld().repository();
  prepare(world);
  return world;
}

function isExecuted(world: World, owner = "git status"): boolean {
  world.outside(owner);
  return existsSync(markOf(world));
}

/** Where git writes what belongs there, the wall cannot hold it; the owner hears of it before git is used again. */
const told: Readonly<Record<string, Case & { readonly said: string }>> = {
  "a repository in a submodule that was not initialised, deep in the project": {
    prepare: (world) => empty(world, "a/b/c/lib"),
    script: armed("a/b/c/lib"),
    said: "a/b/c/lib is a submodule that got its repository during the run",
  },
  "another repository in the index of a submodule": {
    prepare: embed,
    script: `cd lib; ${armed("a/b/c/deep")}; git add a 2>/dev/null`,
    said: "lib/a/b/c/deep was added to the index",
  },
  "another repository in the index of a linked worktree": {
    prepare: (world) => world.git("worktree", "add", "-q", "tree", "-b", "tree"),
    script: `cd tree; ${armed("a/b/c/deep")}; git add a 2>/dev/null`,
    owner: "git -C tree status",
    said: "tree/a/b/c/deep was added to the index",
  },
  "an index that is a link": {
    prepare: () => {},
    script: `${armed("a/b/c/deep")}; git add a 2>/dev/null; mv .git/index .git/idx; ln -s idx .git/index`,
    said: ".git/index cannot be read, so what it says of submodules",
  },
  "a name in the index that holds a NUL": {
    prepare: () => {},
    script: `${armed("z/b/c/deep")}; git add z 2>/dev/null; perl -0pi -e 's/file\\.txt/f\\0le.txt/' .git/index`,
    said: ".git/index is damaged, so what it says of submodules",
  },
  "a repository beside so many directories that the look ends there": {
    prepare: () => {},
    script: `mkdir $(seq 160); ${armed("lib")}`,
    owner: "cd lib; git status",
    said: "lib became a git repository",
  },
};

describe("the owner is told of what git will execute:", () => {
  test.each(Object.entries(told))("%s", async (_, attack) => {
    const world = prepared(attack);
    const { stderr } = await world.inside(withMark(world, attack.script));
    expect(stderr).toContain(attack.said);
    expect(isExecuted(world, attack.owner)).toBe(true);
  });
});

test("what the owner is advised to do about another repository does not execute what it names", async () => {
  const world = newWorld().repository();
  const gitFile = "mv lib/.git kept; echo gitdir: ../kept > lib/.git; git config -f kept/config core.worktree ../lib";
  const { stderr } = await world.inside(withMark(world, `${armed("lib")}; ${gitFile}; git add lib 2>/dev/null`));
  rmSync(markOf(world), { force: true });
  const advice = /was added to the index.*`(.+)`/.exec(stderr)?.[1] as string;
  expect(advice).toBe(`git rm -f --cached ${world.project}/lib`);
  expect(isExecuted(world, `cp .git/index saved; ${advice}; git ls-files lib`)).toBe(false);
  expect(isExecuted(world, "mv saved .git/index; git rm --cached lib")).toBe(true);
});

const held: Readonly<Record<string, Case>> = {
  "a submodule that has its git directory in itself becomes bare": {
    prepare: embed,
    script:
      "cd lib; mv .git/HEAD .git/H; cp -r .git/objects .git/refs .; echo 'ref: refs/heads/main' > HEAD; " +
      `printf ${monitor} > config; printf "\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tworktree = .\\n" >> config`,
    owner: "cd lib; git status",
  },
  "a script without an extension is named after an interpreter": {
    prepare: (world) => {
      world.file("home/project/tools/clean", "cat\n");
      world.file("home/project/.gitattributes", "file.txt filter=x\n");
      world.git("config", "filter.x.clean", "sh tools/clean %f");
    },
    script: "echo 'touch '$MARK > tools/clean; echo x > file.txt",
    owner: "git diff",
  },
  "a script is named in a function": {
    prepare: (world) => {
      world.file("home/project/tools/f2", "#!/bin/sh\ntrue\n", 0o755);
      world.git("config", "alias.f", "!f() { ./tools/f2; }; f");
    },
    script: "printf '#!/bin/sh\\ntouch %s\\n' $MARK > tools/f2",
    owner: "git f",
  },
};

describe("the owner's git does not execute what an agent wrote where", () => {
  test.each(Object.entries(held))("%s", async (_, attack) => {
    const free = prepared(attack);
    free.outside(withMark(free, attack.script));
    expect(isExecuted(free, attack.owner)).toBe(true);

    const world = prepared(attack);
    await world.inside(withMark(world, attack.script));
    expect(isExecuted(world, attack.owner)).toBe(false);
  });
});

test("a submodule is filled inside as outside, and that is told", async () => {
  const world = newWorld().repository();
  empty(world, "libs/sub");
  world.outside("git submodule --quiet init");
  const update = "git -c protocol.file.allow=always submodule --quiet update";
  const { status, stderr } = await world.inside(`${update} && cat libs/sub/file.txt && git status --short`);
  expect({ status, lines: stderr.trim().split("\n") }).toEqual({
    status: 0,
    lines: [expect.stringContaining("libs/sub is a submodule that got its repository during the run")],
  });
  expect((await world.inside("true")).stderr).toBe("");
});
