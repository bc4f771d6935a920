import { describe, expect, test } from "vitest";
import type { ClonePlan } from "../../src/plan/request.ts";
import { accessInside } from "./mount-table.ts";
import { cwd, planFor, planInImage, presetRules, said } from "./ordinary.ts";
import { repositoryAt } from "./tree.ts";

const clone: ClonePlan = {
  repository: "octocat/hello",
  branch: "main",
  url: "https://github.com/octocat/hello.git",
};
const at = (directory: string) => ({ workspace: "clone", clone: { ...clone, directory }, token: true }) as const;

const own = [
  { kind: "own", part: "secrets", target: "/run/secrets", access: "ro", why: "the session's token for git" },
  { kind: "own", part: "askpass", target: "/run/podbot/git-askpass", access: "ro", why: "the session's token for git" },
];

describe("a clone behind bubblewrap", () => {
  const planAt = (directory: string, tree = {}, rules = presetRules("!@all", "@base")) =>
    planFor(rules, tree, { request: at(directory) });

  test("is of the session's own, and nothing says yet where that lies", () => {
    const plan = planAt("/work", { "/work": "directory" });
    expect(plan).toMatchObject({ workspace: "clone", clone, directory: "/work", cwd });
    expect(plan.operations).toContainEqual({
      kind: "own",
      part: "clone",
      target: "/work",
      access: "rw",
      why: "the session's own clone",
    });
    expect(plan.operations).toEqual(expect.arrayContaining(own));
  });

  test("lies where the host has nothing: what is around it is built anew", () => {
    const { operations } = planAt("/missing/here", { "/srv": "directory" });
    const kinds = operations.map(({ kind, target }) => `${kind} ${target}`);
    expect(kinds.indexOf("tmpfs /")).toBeGreaterThan(0);
    expect(kinds).toContain("bind /srv");
    expect(kinds.indexOf("own /missing/here")).toBeGreaterThan(kinds.indexOf("tmpfs /"));
  });

  test("leaves what git obeys where the caller stands protected, and opens no repository for that", () => {
    const main = "/home/u/main/.git";
    const git = repositoryAt(cwd, { gitDir: main, commonDir: main });
    const tree = {
      [`${main}/hooks`]: "directory",
      [`${main}/config`]: "file",
      [`${main}/objects`]: "directory",
    } as const;
    const look = (request: object, ...more: string[]) => {
      const rules = [...presetRules("!@all", "@base"), ...more.map((word) => said("flag", word))];
      const plan = planFor(rules, tree, { survey: { git }, request });
      return ["hooks", "config", "objects"].map((name) => accessInside(plan, `${main}/${name}`));
    };
    expect(look(at("/work"))).toEqual(["ro", "ro", "ro"]);
    expect(look(at("/work"), `rw ${main}`)).toEqual(["ro", "ro", "rw"]);
    // Without a clone, the repository is worked on.
    expect(look({})).toEqual(["ro", "ro", "rw"]);
  });

  test("needs no room in a private place", () => {
    const kinds = planAt("/tmp/here").operations.map(({ kind, target }) => `${kind} ${target}`);
    expect(kinds).toContain("own /tmp/here");
    expect(kinds).not.toContain("tmpfs /");
  });

  test("covers what rules say of the host's own in that place, but not what they bring", () => {
    const rules = [said("flag", "exclude /work/secret"), said("flag", "ro /work/shown")];
    const tree = { "/work/secret": "file", "/work/shown": "directory" } as const;
    const { operations, paths } = planAt("/work", tree, rules);
    const targets = operations.map(({ target }) => target);
    expect(targets).not.toContain("/work/secret");
    expect(targets.indexOf("/work/shown")).toBeGreaterThan(targets.indexOf("/work"));
    expect(paths.map(({ path, mounted }) => [path, mounted])).toEqual([
      ["/work/secret", false],
      ["/work/shown", true],
    ]);
  });
});

describe("a clone in a container", () => {
  const plan = planInImage([], {}, { wishes: { workspace: "/work" }, request: at("/work") });

  test("lies in the container itself, and only the token is brought", () => {
    expect(plan).toMatchObject({ workspace: "clone", clone, directory: "/work" });
    expect(plan.operations.filter(({ kind }) => kind === "own")).toEqual(own);
    expect(plan.operations.map(({ target }) => target)).not.toContain("/work");
  });
});

test("without a token there is no place for one", () => {
  for (const plan of [planFor([]), planInImage([])]) {
    expect(plan.clone).toBeNull();
    expect(plan.operations.filter(({ kind }) => kind === "own")).toEqual([]);
  }
});
