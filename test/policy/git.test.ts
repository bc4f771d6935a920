// @module-tag security
import { describe, expect, test } from "vitest";
import { commonConfigs, type GitLayout, gitRules } from "../../src/policy/git.ts";
import { repositoryAt } from "../plan/tree.ts";

const project = "/home/u/project";
const directory = { kind: "directory" };
const emptyFile = { kind: "file", content: "" };

/** `access path`, in the order of the rules. */
function lines(layout: GitLayout, cwd = project, strict = false): readonly string[] {
  return gitRules(layout, cwd, strict).map(({ access, path }) => `${access} ${path}`);
}

const rules = (place: string, names: readonly string[]) => names.map((name) => `ro ${place}/${name}`);
/** What git obeys in a repository, and in the part of it that a linked worktree has for itself. */
const obeyed = (place: string) =>
  rules(place, ["hooks", "config", "config.worktree", "commondir", "remotes", "branches"]);
const obeyedByWorktree = (place: string) => rules(place, ["commondir", "config.worktree", "gitdir"]);

describe("what git obeys is read-only", () => {
  test("in the repository of the working directory, which needs nothing else", () => {
    expect(lines(repositoryAt(project))).toEqual(obeyed(`${project}/.git`));
  });

  test("where it is missing, something harmless stands in for it", () => {
    expect(gitRules(repositoryAt(project), project, false).map(({ placeholder }) => placeholder)).toEqual([
      directory,
      emptyFile,
      emptyFile,
      { kind: "file", content: ".\n" },
      directory,
      directory,
    ]);
  });

  test("in submodules too", () => {
    const modules = [`${project}/.git/modules/a`, `${project}/.git/modules/a/modules/b`];
    expect(lines(repositoryAt(project, { modules }))).toEqual(
      [`${project}/.git`, ...modules].flatMap((place) => obeyed(place)),
    );
  });

  test("in what every linked worktree has for itself", () => {
    const worktrees = [`${project}/.git/worktrees/a`, `${project}/.git/worktrees/b`];
    const layout = repositoryAt(project, { worktrees });
    expect(lines(layout)).toEqual([...obeyed(`${project}/.git`), ...worktrees.flatMap(obeyedByWorktree)]);
    expect(gitRules(layout, project, false).slice(6, 9)).toEqual([
      { access: "ro", path: `${worktrees[0]}/commondir`, placeholder: { kind: "file", content: "../..\n" } },
      { access: "ro", path: `${worktrees[0]}/config.worktree`, placeholder: emptyFile },
      { access: "ro", path: `${worktrees[0]}/gitdir` },
    ]);
  });

  test("in files elsewhere, where they exist", () => {
    const included = `${project}/tools/gitconfig`;
    const found = gitRules(repositoryAt(project, { obeyed: [included] }), project, false);
    expect(found.at(-1)).toEqual({ access: "ro", path: included });
  });

  test("and so is what would be obeyed if it came into being", () => {
    const absent = [{ path: `${project}/refs`, placeholder: { kind: "directory" } }] as const;
    const found = gitRules(repositoryAt(project, { absent }), project, false);
    expect(found.at(-1)).toEqual({ access: "ro", ...absent[0] });
  });

  test("in hook directories that the configuration names, which cannot be made where they are missing", () => {
    const found = gitRules(repositoryAt(project, { hookDirectories: [`${project}/.husky`] }), project, false);
    expect(found.at(-1)).toEqual({ access: "ro", path: `${project}/.husky`, placeholder: directory });
  });
});

describe("git's own directory, where it lies outside the working directory,", () => {
  test("is writable from a subdirectory, where no second repository can take its place", () => {
    expect(lines(repositoryAt(project), `${project}/src`)).toEqual([
      `rw ${project}/.git`,
      ...obeyed(`${project}/.git`),
      `ro ${project}/src/.git`,
    ]);
    expect(gitRules(repositoryAt(project), `${project}/src`, false).at(-1)?.placeholder).toEqual(directory);
  });

  test("is guarded against a second one at every step from a directory further below", () => {
    const guards = lines(repositoryAt(project), `${project}/a/b`).filter((line) => !line.includes("project/.git"));
    expect(guards).toEqual([`ro ${project}/a/b/.git`, `ro ${project}/a/.git`]);
  });

  test("is the working directory itself where the repository is bare", () => {
    const bare = repositoryAt(project, {
      entry: { path: project, kind: "directory" },
      gitDir: project,
      commonDir: project,
    });
    expect(lines(bare)).toEqual([...obeyed(project), `ro ${project}/.git`]);
  });

  const main = "/home/u/main/.git";
  const worktree = repositoryAt(project, {
    entry: { path: `${project}/.git`, kind: "file" },
    gitDir: `${main}/worktrees/project`,
    commonDir: main,
    worktrees: [`${main}/worktrees/other`, `${main}/worktrees/project`],
  });
  const protection = [
    `ro ${project}/.git`,
    ...obeyed(main),
    ...obeyedByWorktree(`${main}/worktrees/project`),
    ...obeyedByWorktree(`${main}/worktrees/other`),
  ];

  test("is writable for a linked worktree to which it points back; the file that leads there is not", () => {
    expect(lines(worktree)).toEqual([`rw ${main}`, `rw ${main}/worktrees/project`, ...protection]);
  });

  test("is not writable if it does not point back", () => {
    expect(lines({ ...worktree, pointsBack: false })).toEqual(protection);
  });

  test.each(["directory", "link"] as const)("is not writable if only a %s of the project's leads there", (kind) => {
    const entry = { path: `${project}/.git`, kind };
    const found = lines(repositoryAt(project, { entry, commonDir: main, pointsBack: false }));
    expect(found.filter((line) => line.startsWith("rw"))).toEqual([]);
  });

  test("is not writable for the sake of a submodule's directory", () => {
    const modules = [`${main}/modules/a`];
    expect(lines({ ...worktree, modules })).not.toContain(`rw ${main}/modules/a`);
  });

  test("is writable for a submodule's worktree to which it points back", () => {
    const gitDir = "/home/u/super/.git/modules/project";
    const entry = { path: `${project}/.git`, kind: "file" } as const;
    expect(lines(repositoryAt(project, { entry, gitDir, commonDir: gitDir }))).toEqual([
      `rw ${gitDir}`,
      `ro ${project}/.git`,
      ...obeyed(gitDir),
    ]);
  });
});

test("git's configurations for every repository are all that it may read, whatever a variable puts in their place", () => {
  const usual = ["/etc/gitconfig", "/usr/local/etc/gitconfig", "/home/u/.gitconfig", "/home/u/.config/git/config"];
  expect(commonConfigs("/home/u", {})).toEqual(usual);
  const env = { XDG_CONFIG_HOME: "/x", GIT_CONFIG_GLOBAL: "/g", GIT_CONFIG_SYSTEM: "/s", GIT_CONFIG: "/other" };
  expect(commonConfigs("/home/u", env)).toEqual([...usual, "/x/git/config", "/s", "/g"]);
  expect(commonConfigs("/home/u", { XDG_CONFIG_HOME: "", GIT_CONFIG_GLOBAL: "relative" })).toEqual(usual);
});

describe("strict protection", () => {
  const git = `${project}/.git`;
  const strict = (more: Partial<GitLayout>) => lines(repositoryAt(project, more), project, true).slice(6);

  test("adds tags and packed refs, which cannot be made either", () => {
    expect(strict({})).toEqual([`ro ${git}/refs/tags`, `ro ${git}/packed-refs`]);
    const [tags, packed] = gitRules(repositoryAt(project), project, true).slice(-2);
    expect(tags?.placeholder).toEqual(directory);
    expect(packed?.placeholder).toEqual(emptyFile);
  });

  test.each<[string, string | null, readonly string[], readonly string[]]>([
    ["every branch but the current one", "refs/heads/main", ["main", "next"], ["next"]],
    ["every branch where HEAD is detached", null, ["main", "next"], ["main", "next"]],
    ["every branch where HEAD names no branch", "refs/remotes/origin/main", ["main"], ["main"]],
    [
      "no directory on the way to the current branch",
      "refs/heads/a/b/c",
      ["a", "a/b", "a/b/c", "a/b/d", "ab"],
      ["a/b/d", "ab"],
    ],
    ["a branch that only begins like the current one", "refs/heads/main", ["main", "main2"], ["main2"]],
    ["nothing where there is no branch yet", "refs/heads/main", [], []],
  ])("covers %s", (_, branch, heads, expected) => {
    expect(strict({ branch, heads }).slice(0, -2)).toEqual(expected.map((head) => `ro ${git}/refs/heads/${head}`));
  });

  test("protects the shared refs of a linked worktree", () => {
    const layout = repositoryAt(project, {
      entry: { path: `${project}/.git`, kind: "file" },
      gitDir: "/main/.git/worktrees/project",
      commonDir: "/main/.git",
      heads: ["main", "next"],
    });
    expect(lines(layout, project, true).slice(-3)).toEqual([
      "ro /main/.git/refs/heads/next",
      "ro /main/.git/refs/tags",
      "ro /main/.git/packed-refs",
    ]);
  });
});
