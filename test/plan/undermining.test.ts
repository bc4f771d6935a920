// @module-tag security
import { describe, expect, test } from "vitest";
import { PolicyError } from "../../src/errors.ts";
import { collectRules } from "../../src/keeper/rules.ts";
import { decisionFor } from "../../src/plan/access.ts";
import { makePlan } from "../../src/plan/make.ts";
import { knownCopies } from "../../src/policy/commands.ts";
import { segmentMatcher, toPattern } from "../../src/policy/glob.ts";
import { choosePresets } from "../../src/policy/presets.ts";
import type { Rule } from "../../src/policy/rule.ts";
import { failure } from "../failure.ts";
import { accessInside } from "./mount-table.ts";
import { cwd, ordinaryRequest, ordinaryTree, planFor, presetRules, said } from "./ordinary.ts";
import { repositoryAt, surveyOf, type Tree } from "./tree.ts";

const base = presetRules("!@all", "@base");
const untrusted = (line: string): Rule => said("project", line, { trusted: false });

test("a link does not lead out of a working directory that looks like a pattern", () => {
  const cwd = "/home/u/[id]";
  const value = { filesystem: { ro: ["*"] } };
  const rules = collectRules(
    [{ name: "flag", source: "", trusted: true, value }],
    choosePresets(["!@all", "@base"]),
    "host",
    { home: "/home/u", cwd },
  );
  const tree: Tree = { [`${cwd}/x`]: "-> /home/u/.ssh/id", "/home/u/.ssh/id": "file" };
  expect(failure(PolicyError, () => planFor(rules, tree, { request: { cwd } })).code).toBe("PATH_REFUSED");
});

describe("a command may be called as a property of objects", () => {
  test.each(["constructor", "toString", "__proto__"])("%s", (name) => {
    expect(knownCopies(name)).toEqual([]);
    const request = { commands: [{ kind: "deny", name }] } as const;
    const targets = Object.fromEntries([[name, [{ path: `/usr/bin/${name}`, identity: "1:2", package: null }]]]);
    const { operations } = planFor([], {}, { request, survey: { targets } });
    const table = operations.find(({ target }) => target === "/run/podbot/commands");
    expect(table?.kind === "file" && table.content).not.toContain("undefined");
  });
});

test("the decision for a path is what holds there", () => {
  const rules = [said("podbot", "ro ~/.config/podbot", { guard: true }), said("flag", "exclude ~/.config")];
  const plan = planFor(rules, { "/home/u/.config/podbot/config.toml": "file" });
  expect(decisionFor(plan, "/home/u/.config/podbot/config.toml")?.access).toBe("exclude");
});

test("a missing name is held where its links lead", () => {
  const rules = [
    said("default", "rw ."),
    said("podbot", "ro ~/.config/podbot", { placeholder: { kind: "directory" }, guard: true }),
  ];
  const tree: Tree = { "/home/u/.config": "-> /home/u/project/config", [`${cwd}/config`]: "directory" };
  expect(planFor(rules, tree).held).toMatchObject([
    { path: `${cwd}/config/podbot`, placeholder: { kind: "directory" }, directory: `inode of ${cwd}/config` },
  ]);
});

test("a filesystem that counts no links loses no protection", () => {
  const tree: Tree = { [`${cwd}/secret`]: { kind: "directory", links: 0 } };
  expect(accessInside(planFor([...base, said("flag", "exclude secret")], tree), `${cwd}/secret`)).toBe("exclude");
});

test("the request is left as it was", () => {
  const request = ordinaryRequest({ command: ["a"] });
  makePlan(request, surveyOf(ordinaryTree, request));
  expect(Object.isFrozen(request.command)).toBe(false);
});

test("what bash would read otherwise is refused", () => {
  expect(() => toPattern("/a/[[:alpha:]]x", { home: "/h", cwd: "/c" })).toThrow(PolicyError);
});

test("two real programs never share a place", () => {
  const target = (path: string) => ({ path, identity: path, package: null });
  const request = {
    commands: [
      { kind: "preset", name: "git", preset: "@git" },
      { kind: "script", name: "git.1", script: "/s" },
    ],
  } as const;
  const targets = {
    git: [target("/usr/bin/git"), target("/usr/lib/git-core/git")],
    "git.1": [target("/usr/bin/git.1")],
  };
  const scripts = { "git.1": { path: "/s", identity: "s", interpreter: "/usr/bin/sh", interpreterArgument: "" } };
  const { operations } = planFor([], {}, { request, survey: { targets, scripts } });
  const sources = operations.flatMap((o) =>
    o.kind === "bind" && o.target.startsWith("/run/podbot/real/") ? [o.source] : [],
  );
  expect(sources).toContain("/usr/bin/git.1");
});

test("matching tries no pattern in every possible way", () => {
  expect(segmentMatcher(`${"*a".repeat(6)}*b`, "x").test("a".repeat(255))).toBe(false);
});

describe("naming what Podbot protects does not let it be opened below", () => {
  const own = said("podbot", "ro ~/.config/podbot", { guard: true, placeholder: { kind: "directory" } });
  const tree: Tree = { "/home/u/.config/podbot/trust.json": "file" };
  const path = "/home/u/.config/podbot/trust.json";
  test.each(["exclude", "ro"])("by the owner, %s", (access) => {
    const rules = [...base, own, said("flag", `${access} ~/.config/podbot`), said("flag", `rw ${path}`)];
    expect(accessInside(planFor(rules, tree), path)).not.toBe("rw");
  });
  test("by an untrusted project, which revives a rule of the owner's", () => {
    const rules = [...base, own, said("global", `rw ${path}`)];
    expect(accessInside(planFor(rules, tree), path)).toBe("ro");
    expect(accessInside(planFor([...rules, untrusted("exclude ~/.config/podbot")], tree), path)).not.toBe("rw");
  });
});

test("an untrusted rule that a guard beats opens nothing either", () => {
  const git = repositoryAt(cwd);
  const tree: Tree = { [`${cwd}/.git/hooks/pre-commit`]: "file" };
  const given = [...base, said("global", "exclude .git/*")];
  expect(accessInside(planFor(given, tree, { survey: { git } }), `${cwd}/.git/hooks`)).toBe("exclude");
  const build = () => planFor([...given, untrusted("rw .git/hooks")], tree, { survey: { git } });
  expect(failure(PolicyError, build).code).toBe("CONFIG_UNTRUSTED");
});
