import { describe, expect, test } from "vitest";
import { type GitLayout, gitRules } from "../../src/policy/git.ts";
import { repositoryAt } from "../plan/tree.ts";

const project = "/home/u/project";
const directory = { kind: "directory" };
const emptyFile = { kind: "file", content: "" };

/** `access path`, in the order of the rules. */
function lines(layout: GitLayout, cwd = project, strict = false): readonly string[] {
  return gitRules(layout, cwd, strict).map(({ access, path }) => `${access} ${path}`);
}

const obeyed = (place: string) =>
  ["hooks", "config", "config.worktree", "commondir"].map((name) => `ro ${place}/${name}`);

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
    ]);
  });

  test("in submodules too", () => {
    const modules = [`${project}/.git/modules/a`, `${project}/.git/modules/a/modules/b`];
    expect(lines(repositoryAt(project, { modules }))).toEqual(
      [`${project}/.git`, ...modules].flatMap((place) => obeyed(place)),
    );
  });

  test("in hook directories that the configuration names, which cannot be made where they are missing", () => {
    const rules = gitRules(repositoryAt(project, { hookDirectories: [`${project}/.husky/_`] }), project, false);
    expect(rules.at(-1)).toEqual({ access: "ro", path: `${project}/.husky/_`, placeholder: directory });
  });
});

describe("git's own directory, where it lies outside the working directory,", () => {
  test("is writable from a subdirectory", () => {
    expect(lines(repositoryAt(project), `${project}/src`)).toEqual([
      `rw ${project}/.git`,
      ...obeyed(`${project}/.git`),
    ]);
  });

  const main = "/home/u/main/.git";
  const worktree = repositoryAt(project, {
    entry: { path: `${project}/.git`, kind: "file" },
    gitDir: `${main}/worktrees/project`,
    commonDir: main,
  });

  test("is writable for a linked worktree to which it points back; the file that leads there is not", () => {
    expect(lines({ ...worktree, pointsBack: true })).toEqual([
      `rw ${main}`,
      `rw ${main}/worktrees/project`,
      `ro ${project}/.git`,
      ...obeyed(main),
      ...obeyed(`${main}/worktrees/project`),
    ]);
  });

  test("is not writable if it does not point back", () => {
    expect(lines(worktree)).toEqual([`ro ${project}/.git`, ...obeyed(main), ...obeyed(`${main}/worktrees/project`)]);
  });

  test("is not writable for the sake of a submodule's directory", () => {
    const modules = [`${main}/modules/a`];
    expect(lines({ ...worktree, modules, pointsBack: true })).not.toContain(`rw ${main}/modules/a`);
  });

  test("is writable for a submodule's worktree to which it points back", () => {
    const gitDir = "/home/u/super/.git/modules/project";
    const entry = { path: `${project}/.git`, kind: "file" } as const;
    expect(lines(repositoryAt(project, { entry, gitDir, commonDir: gitDir, pointsBack: true }))).toEqual([
      `rw ${gitDir}`,
      `ro ${project}/.git`,
      ...obeyed(gitDir),
    ]);
  });
});

describe("strict protection", () => {
  const git = `${project}/.git`;
  const strict = (more: Partial<GitLayout>) => lines(repositoryAt(project, more), project, true).slice(4);

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
      pointsBack: true,
      heads: ["main", "next"],
    });
    expect(lines(layout, project, true).slice(-3)).toEqual([
      "ro /main/.git/refs/heads/next",
      "ro /main/.git/refs/tags",
      "ro /main/.git/packed-refs",
    ]);
  });
});
