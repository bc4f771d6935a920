// @module-tag security
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { newWorld, type World } from "../world.ts";

const inRepository = () => newWorld().repository();
const lib = "git init -q lib; git -C lib commit -q --allow-empty -m x";

describe("after a run the owner is told", () => {
  test.each<[string, () => World, string, (project: string) => readonly string[]]>([
    ["that there is no repository any more", inRepository, "rm .git/HEAD", (at) => [`${at}/.git is no git repository`]],
    ["so if HEAD says nothing", inRepository, "echo x > .git/HEAD", (at) => [`${at}/.git is no git repository`]],
    ["so if there are no refs", inRepository, "mv .git/refs .git/r", (at) => [`${at}/.git is no git repository`]],
    [
      "of a repository that git status looks into",
      inRepository,
      `${lib}; git add lib 2>/dev/null`,
      (at) => [`${at}/lib was added to the index`, `${at}/lib became a git repository`],
    ],
    ["of a bare one below", inRepository, "git init -q --bare a/b", (at) => [`${at}/a/b became a git repository`]],
    ["of one where there was none", newWorld, "git init -q .", (at) => [`${at} became a git repository`]],
    ["of a few out of many", inRepository, "for n in 1 2 3 4 5 6 7; do git init -q $n; done", () => ["And 2 more"]],
  ])("%s", async (_, prepare, script, messages) => {
    const world = prepare();
    const { stderr } = await world.inside(script);
    for (const message of messages(world.project)) expect(stderr.split(message)).toHaveLength(2);
  });

  test("that the repository of a linked worktree is none any more, whatever works in it next", async () => {
    const world = inRepository();
    const tree = join(world.home, "tree");
    world.git("worktree", "add", "-q", tree, "-b", "tree");
    const { stderr } = await world.inside("rm $(git rev-parse --git-common-dir)/HEAD", "-C", tree);
    expect(stderr).toContain(`${world.project}/.git is no git repository any more`);
  });

  test("nothing of what was there before, or is no repository", async () => {
    const world = inRepository();
    world.outside(`${lib}; git add lib; git commit -qm lib; git init -q --bare a/b; git worktree add -q tree -b tree`);
    world.git("init", "-q", join(world.project, "own"));
    const { status, stderr } = await world.inside("mkdir -p c/.git c/refs; echo x >> file.txt; git commit -qam x");
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  });
});
