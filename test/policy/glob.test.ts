import { spawnSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PolicyError } from "../../src/errors.ts";
import { isGlob, segmentMatcher, toPattern } from "../../src/policy/glob.ts";
import { failure } from "../failure.ts";

describe("a path is a pattern", () => {
  test.each([
    ["/a/*", true],
    ["/a/b?", true],
    ["/[ab]/c", true],
    ["/**/x", true],
    ["/a/b.c", false],
    ["/a]/{b,c}", false],
    ["", false],
  ])("%s: %s", (path, expected) => {
    expect(isGlob(path)).toBe(expected);
  });
});

describe("a segment", () => {
  test.each<[string, readonly string[], readonly string[]]>([
    ["*", ["a", "a.b", "new\nline", "ü", "😀"], [".a"]],
    ["*.txt", ["a.txt", "a.b.txt"], ["a.txt.b", ".txt", "axtxt"]],
    ["a*", ["a", "ab", "a."], ["ba", ".a"]],
    ["?", ["a", "ü", "😀", "\n"], ["", "ab", "."]],
    ["?b", ["ab"], ["b", ".b"]],
    [".*", [".", ".a", "..."], ["a", ""]],
    [".?", [".a"], [".", "a"]],
    ["[ab]", ["a", "b"], ["c", "ab", ""]],
    ["[a-c]x", ["ax", "bx", "cx"], ["dx", "x", "-x"]],
    ["[!a-c]", ["d", "-", "^"], ["a", "b", "."]],
    ["[^a]", ["b"], ["a", "^".repeat(2)]],
    ["[a^]", ["a", "^"], ["b"]],
    ["[]a]", ["]", "a"], ["b", "[]a]"]],
    ["[a-a]", ["a"], ["b", "-"]],
    ["[a-]", ["a", "-"], ["b"]],
    ["[-a]", ["a", "-"], ["b"]],
    ["[[]x[]]", ["[x]"], ["x"]],
    ["[.]a", [], [".a", "a"]],
    ["a[.]b", ["a.b"], ["axb"]],
    ["[\\]", ["\\"], ["a"]],
    ["[*?]", ["*", "?"], ["a"]],
    ["x[a-b]y[!c]", ["xayd", "xby!"], ["xcyd", "xayc"]],
    ["a+(b)|{c}^$\\.]", ["a+(b)|{c}^$\\.]"], ["aab", "a+(b)|{c}^$\\x]"]],
  ])("%j stands for %j and not for %j", (segment, matching, others) => {
    const matcher = segmentMatcher(segment, segment);
    for (const name of matching) expect(matcher.test(name), name).toBe(true);
    for (const name of others) expect(matcher.test(name), name).toBe(false);
  });

  test("without wildcards stands for itself alone", () => {
    const name = fc.string({ unit: "binary", maxLength: 8 }).filter((text) => !isGlob(text));
    fc.assert(
      fc.property(name, name, (one, other) => {
        expect(segmentMatcher(one, one).test(one)).toBe(true);
        expect(segmentMatcher(one, one).test(other)).toBe(one === other);
      }),
    );
  });

  test("is refused, or stands for what it stands for in bash", () => {
    const text = (characters: string, maxLength: number) =>
      fc.string({ unit: fc.constantFrom(...characters), minLength: 1, maxLength });
    const pairs = fc.array(fc.tuple(text("abc*?[]!^-", 6), text("abc[]!^-*", 4)), { minLength: 50, maxLength: 100 });
    fc.assert(
      fc.property(pairs, (generated) => {
        const cases = generated.filter(([pattern]) => isAccepted(pattern));
        const ours = cases.map(([pattern, name]) => segmentMatcher(pattern, pattern).test(name));
        const shown = (verdicts: readonly boolean[]) =>
          cases.map(([pattern, name], at) => `${name} ${verdicts[at] ? "matches" : "does not match"} ${pattern}`);
        expect(shown(ours)).toEqual(shown(matchedByBash(cases)));
      }),
      { numRuns: 20 },
    );
  });
});

function isAccepted(pattern: string): boolean {
  try {
    toPattern(pattern, { home: "/home/me", cwd: "/" });
    return true;
  } catch {
    return false;
  }
}

function matchedByBash(cases: readonly (readonly [pattern: string, name: string])[]): readonly boolean[] {
  const script = "while (($#)); do if [[ $2 == $1 ]]; then echo yes; else echo no; fi; shift 2; done";
  const { stdout } = spawnSync("bash", ["-c", script, "bash", ...cases.flat()], {
    env: { PATH: process.env["PATH"], LC_ALL: "C" },
    encoding: "utf8",
  });
  return stdout
    .trim()
    .split("\n")
    .map((word) => word === "yes");
}

describe("a pattern that could never be expanded is refused", () => {
  test.each([
    ["/a/[b", "a `[` is never closed"],
    ["/a/[]", "a `[` is never closed"],
    ["/[a/b]", "a `[` is never closed"],
    ["/a[!]b", "a `[]` holds nothing"],
    ["/a[^]b", "a `[]` holds nothing"],
    ["/x/[z-a]/y", "the range z-a runs backwards"],
    ["/[a-cz-x]", "the range z-x runs backwards"],
  ])("%s: %s", (pattern, why) => {
    const error = failure(PolicyError, () => toPattern(pattern, { home: "/home/me", cwd: "/" }));
    expect(error.code).toBe("PATTERN_INVALID");
    expect(error.message).toContain(JSON.stringify(pattern));
    expect(error.message).toContain(why);
    expect(error.details).toEqual({ pattern });
  });

  test.each(["/", "/a/b", "/**", "/a/**/[a-z]?*", "/a]", "/**/*.ts"])("and %s is not", (pattern) => {
    expect(() => toPattern(pattern, { home: "/home/me", cwd: "/" })).not.toThrow();
  });
});

describe("what is written", () => {
  const from = { home: "/home/m[e]", cwd: "/srv/[slug]*" };

  test("is a plain path wherever it is read from", () => {
    expect(toPattern("a", from)).toEqual({ pattern: "/srv/[slug]*/a" });
    expect(toPattern("~/b", from)).toEqual({ pattern: "/home/m[e]/b" });
  });

  test("is a glob only by its own letters", () => {
    expect(toPattern("*.ts", from)).toEqual({ pattern: "/srv/[[]slug][*]/*.ts", glob: true });
    expect(toPattern("~/?", from)).toEqual({ pattern: "/home/m[[]e]/?", glob: true });
  });
});
