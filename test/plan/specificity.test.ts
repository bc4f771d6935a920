import { describe, expect, test } from "vitest";
import { PolicyError } from "../../src/errors.ts";
import type { Access, Rule } from "../../src/policy/rule.ts";
import { failure } from "../failure.ts";
import { accessInside } from "./mount-table.ts";
import { planFor, presetRules, said } from "./ordinary.ts";
import type { Tree } from "./tree.ts";

const base = presetRules("!@all", "@base");
const project = "/home/u/project";
const tree: Tree = {
  "/home/u/.cache/pip": "directory",
  "/home/u/.ssh/id": "file",
  "/home/u/data/a.txt": "file",
  "/home/u/data/deep/b.txt": "file",
  [`${project}/ex/a.txt`]: "file",
  [`${project}/a.txt`]: "file",
};

interface Row {
  readonly title: string;
  readonly rules: readonly Rule[];
  readonly path: string;
  readonly access: Access;
}

describe("a longer path beats a shorter one:", () => {
  test.each<Row>([
    {
      title: "a writable directory in a hidden one can be written",
      rules: [said("flag", "exclude ~/data"), said("global", "rw ~/data/deep")],
      path: "/home/u/data/deep/b.txt",
      access: "rw",
    },
    {
      title: "its neighbours stay hidden",
      rules: [said("flag", "exclude ~/data"), said("global", "rw ~/data/deep")],
      path: "/home/u/data/a.txt",
      access: "exclude",
    },
    {
      title: "a hidden file in a writable directory is hidden",
      rules: [said("flag", "rw ~/data"), said("default", "exclude ~/data/a.txt")],
      path: "/home/u/data/a.txt",
      access: "exclude",
    },
    {
      title: "a readable file in a writable directory is read-only",
      rules: [said("flag", "rw ~/data"), said("default", "ro ~/data/a.txt")],
      path: "/home/u/data/a.txt",
      access: "ro",
    },
    {
      title: "what a pattern finds below an exact path is below it all the same",
      rules: [said("flag", "rw ~/data"), said("default", "ro ~/data/*.txt")],
      path: "/home/u/data/a.txt",
      access: "ro",
    },
    {
      title: "the working directory is writable in a home that is not",
      rules: base,
      path: `${project}/a.txt`,
      access: "rw",
    },
    {
      title: "a store of credentials is hidden in a home that is readable",
      rules: base,
      path: "/home/u/.ssh/id",
      access: "exclude",
    },
    {
      title: "unless a rule names what lies in it",
      rules: [...base, said("flag", "ro ~/.ssh/id")],
      path: "/home/u/.ssh/id",
      access: "ro",
    },
  ])("$title", ({ rules, path, access }) => {
    expect(accessInside(planFor(rules, tree), path)).toBe(access);
  });
});

describe("for one path, an exact rule beats a pattern:", () => {
  test.each<Row>([
    {
      title: "ro a.txt in the global file holds against --rw '*.txt'",
      rules: [...base, said("global", "ro a.txt"), said("flag", "rw *.txt")],
      path: `${project}/a.txt`,
      access: "ro",
    },
    {
      title: "ro a.txt in the global file holds against --exclude '*.txt'",
      rules: [...base, said("global", "ro a.txt"), said("flag", "exclude *.txt")],
      path: `${project}/a.txt`,
      access: "ro",
    },
    {
      title: "--rw a.txt holds against --exclude '**/*.txt'",
      rules: [...base, said("flag", "rw a.txt"), said("flag", "exclude **/*.txt")],
      path: `${project}/a.txt`,
      access: "rw",
    },
    {
      title: "other files that the pattern finds are hidden",
      rules: [...base, said("flag", "rw a.txt"), said("flag", "exclude **/*.txt")],
      path: `${project}/ex/a.txt`,
      access: "exclude",
    },
  ])("$title", ({ rules, path, access }) => {
    expect(accessInside(planFor(rules, tree), path)).toBe(access);
  });
});

describe("for one path, exclude beats ro and ro beats rw, whatever the layers:", () => {
  test.each<Row>([
    {
      title: "--exclude ~/.cache hides what the preset makes writable",
      rules: [...presetRules(), said("flag", "exclude ~/.cache")],
      path: "/home/u/.cache/pip",
      access: "exclude",
    },
    {
      title: "--rw ex does not open what the project makes read-only",
      rules: [...base, said("project", "ro ex"), said("flag", "rw ex/")],
      path: `${project}/ex/a.txt`,
      access: "ro",
    },
    {
      title: "the project's rw does not open what the global file hides",
      rules: [...base, said("global", "exclude ~/data"), said("project", "rw ~/data")],
      path: "/home/u/data/a.txt",
      access: "exclude",
    },
    {
      title: "--ro does not open what the global file hides",
      rules: [...base, said("global", "exclude ~/data"), said("flag", "ro ~/data")],
      path: "/home/u/data/a.txt",
      access: "exclude",
    },
    {
      title: "ro and rw in one layer are ro",
      rules: [...base, said("flag", "rw ~/data"), said("flag", "ro ~/data")],
      path: "/home/u/data/a.txt",
      access: "ro",
    },
    {
      title: "ro and rw by patterns are ro",
      rules: [...base, said("flag", "rw ~/dat?"), said("global", "ro ~/da*")],
      path: "/home/u/data/a.txt",
      access: "ro",
    },
    {
      title: "--rw ~/.ssh does not open what @base hides",
      rules: [...base, said("flag", "rw ~/.ssh")],
      path: "/home/u/.ssh/id",
      access: "exclude",
    },
  ])("$title", ({ rules, path, access }) => {
    expect(accessInside(planFor(rules, tree), path)).toBe(access);
  });
});

describe("for one path, of rules that say the same the later layer is named:", () => {
  test.each([
    [["default", "global"], "global"],
    [["project", "global"], "project"],
    [["environment", "project"], "environment"],
    [["flag", "environment", "default"], "flag"],
  ] as const)("of %j it is %s", (layers, expected) => {
    const rules = layers.map((layer) => said(layer, "rw ~/data"));
    const decision = planFor(rules, tree).paths.find(({ path }) => path === "/home/u/data");
    expect(decision).toMatchObject({ layer: expected, access: "rw" });
    expect(decision?.beaten).toHaveLength(layers.length - 1);
  });
});

describe("a working directory is refused where", () => {
  test.each([
    ["it is the home", "/home/u", [], "your whole home would be writable"],
    ["it is the root", "/", [], "everything would be writable"],
    ["a rule hides it", project, [said("flag", "exclude .")], "it is hidden by exclude . (--exclude, flag)"],
    ["a rule hides what it lies in", `${project}/ex`, [said("global", "exclude ~/project")], "exclude ~/project"],
    [
      "a rule hides what it lies in, although another opens it",
      `${project}/ex`,
      [said("global", "exclude ~/project"), said("flag", "rw ~/project/ex")],
      "exclude ~/project",
    ],
  ])("%s", (_, cwd, rules, why) => {
    const error = failure(PolicyError, () => planFor(rules, tree, { request: { cwd } }));
    expect(error.code).toBe("PATH_REFUSED");
    expect(error.message).toContain(`The sandbox cannot be started in ${cwd}`);
    expect(error.message).toContain(why);
    expect(error.hint).toBeTruthy();
  });
});
