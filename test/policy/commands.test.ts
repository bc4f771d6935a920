import { describe, expect, test } from "vitest";
import { PolicyError } from "../../src/errors.ts";
import { knownCopies, parseCommandRules } from "../../src/policy/commands.ts";
import { failure } from "../failure.ts";

const from = { home: "/home/u", cwd: "/home/u/project" };

describe("a command rule", () => {
  test.each([
    ["true leaves the command as it is", { rm: true }, []],
    ["false blocks it", { rm: false }, [{ kind: "deny", name: "rm" }]],
    ["@git guards git", { git: "@git" }, [{ kind: "preset", name: "git", preset: "@git" }]],
    [
      "a relative path is a script in the working directory",
      { npm: "tools/npm.sh" },
      [{ kind: "script", name: "npm", script: "/home/u/project/tools/npm.sh" }],
    ],
    ["~ is the home", { npm: "~/bin/npm.sh" }, [{ kind: "script", name: "npm", script: "/home/u/bin/npm.sh" }]],
    ["an absolute path stays", { npm: "/opt/npm.sh" }, [{ kind: "script", name: "npm", script: "/opt/npm.sh" }]],
  ])("of %s", (_, commands, expected) => {
    expect(parseCommandRules(commands, from)).toEqual(expected);
  });

  test("may be for any name that can be typed", () => {
    const names = ["[", "...", "a b", "constructor", "x.sh"];
    const rules = parseCommandRules(Object.fromEntries(names.map((name) => [name, false])), from);
    expect(rules.map(({ name }) => name).sort()).toEqual(names.sort());
  });

  test("stands in the order of names, however they were written", () => {
    const expected = ["curl", "git", "rm"];
    for (const names of [expected, expected.toReversed(), ["git", "rm", "curl"]]) {
      const rules = parseCommandRules(Object.fromEntries(names.map((name) => [name, false])), from);
      expect(rules.map(({ name }) => name)).toEqual(expected);
    }
  });

  test.each(["", ".", "..", "/bin/rm", "./rm", "a/b", "a\0b"])("is refused for %j, which is no command", (name) => {
    const error = failure(PolicyError, () => parseCommandRules({ [name]: false }, from));
    expect(error.code).toBe("COMMAND_RULE_INVALID");
    expect(error.message).toContain(JSON.stringify(name));
    expect(error.details).toEqual({ command: name });
  });

  test.each([
    ["rm", "@git"],
    ["git", "@rm"],
    ["git", "@"],
    ["npm", "@npm"],
  ])("is refused where %s = %j names a preset that is not for it", (name, value) => {
    const error = failure(PolicyError, () => parseCommandRules({ [name]: value }, from));
    expect(error.code).toBe("COMMAND_RULE_INVALID");
    expect(error.message).toContain(`the preset ${value} is not for it`);
    expect(error.hint).toContain('git = "@git"');
  });

  test("is refused where its script is no path", () => {
    expect(failure(PolicyError, () => parseCommandRules({ npm: "" }, from)).code).toBe("PATH_REFUSED");
  });
});

describe("known copies", () => {
  test("of git lie where Debian, others and a build from source put them", () => {
    expect(knownCopies("git")).toEqual([
      "/usr/lib/git-core/git",
      "/usr/libexec/git-core/git",
      "/usr/local/libexec/git-core/git",
    ]);
  });

  test("of other programs there are none", () => {
    expect(knownCopies("npm")).toEqual([]);
  });
});
