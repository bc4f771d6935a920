import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  hasStar,
  isLoosePath,
  isOddPath,
  matchesPath,
  pathMatcher,
  pathMistake,
  segmentsOf,
} from "../../src/policy/network-paths.ts";

const segment = fc.stringMatching(/^[A-Za-z0-9_~-][A-Za-z0-9_.~-]{0,5}$/);
const path = fc.array(segment, { maxLength: 5 }).map((segments) => `/${segments.join("/")}`);

describe("a path is odd", () => {
  test.each([
    ["does not begin at the root", ["", "a", "*", "http://x.org/a"]],
    ["has dot segments", ["/.", "/..", "/a/../b", "/a/./b", "/a/..;x/b", "/a/.;", "/..;/"]],
    [
      "has them in disguise",
      ["/a/..%3bx/b", "/..%20/b", "/a/.%20", "/..%C2%A0/b", "/%2e%2e/a", "/a/%2E./b", "/.%2e", "/a/%2e%2e%2fb"],
    ],
    ["hides slashes", ["/a%2fb", "/a%2Fb", "/a%5cb", "/a\\b", "//a", "/a//b", "/a/b//"]],
    ["hides letters and digits", ["/%61", "/%41b", "/%30", "/%2d", "/%5f", "/%7e", "/%7A", "/%5a"]],
    ["has controls", ["/a%00", "/%0a", "/%1F", "/%7f", "/a b", "/a\tb", "/a\nb", "/a\0"]],
    ["is decoded twice by some", ["/%252e%252e/a", "/%252f", "/%25c0"]],
    ["has broken escapes", ["/%", "/%2", "/%zz", "/a%g0", "/%c3", "/%ff", "/%c0%ae%c0%ae", "/%ed%a0%80"]],
    ["holds what ends a path", ["/a?b", "/a#b"]],
    ["has a space before dots", ["/%20../b", "/a/%20.", "/%C2%A0../b"]],
    [
      "has letters that are folded to dots, slashes and the like",
      [
        "/%ef%bc%8e%ef%bc%8e/b",
        "/a%ef%bc%8fb",
        "/a%EF%BC%BCb",
        "/a%ef%bc%9bb",
        "/%e2%80%a5/b",
        "/a%cd%be",
        "/%e2%80%a6",
      ],
    ],
    ["has what looks like a slash", ["/a%e2%88%95b", "/a%e2%81%84b", "/a%e2%88%96b"]],
    ["has what shows nothing", ["/a%e2%80%8b/x", "/.%c2%ad./b", "/a%c2%85", "/%ef%bb%bfa", "/%e2%80%ae"]],
    ["holds other letters than ASCII", ["/é", "/a\u2215b", "/\u202e"]],
  ])("where it %s", (_, paths) => {
    for (const odd of paths) expect([odd, isOddPath(odd)]).toEqual([odd, true]);
  });

  test.each([
    "/",
    "/a",
    "/a/",
    "/a.b/..c/...",
    "/@scope/name",
    "/v1/items:batch",
    "/a%20b",
    "/caf%C3%A9",
    "/caf%c3%a9",
    "/100%25",
    "/a;v=1/b",
    "/a%3Ab%40c%2Bd",
    '/{id}|[0]^`"<>',
    "/a+b,c=d&e!$'()*",
  ])("%s is not", (plain) => {
    expect(isOddPath(plain)).toBe(false);
  });

  test("whatever the rest of it is", () => {
    const odd = fc.constantFrom("..", ".", "%2e%2e", "%2f", "%5c", "\\", "%00", "..;", "%", "%252e", "", "%c0%af");
    fc.assert(
      fc.property(path, odd, path, (before, part, after) => {
        const start = before === "/" ? "" : before;
        expect(isOddPath(`${start}/${part}${after}`)).toBe(true);
      }),
    );
  });

  test("where somebody who resolves it comes out elsewhere, and only there", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^\/[a-c./%2ef;\\]{0,12}$/), (text) => {
        if (!isOddPath(text)) expect(new URL(`http://x.org${text}`).pathname).toBe(text);
      }),
      { numRuns: 2000 },
    );
  });
});

describe("a path is loose", () => {
  test.each([
    ["something ends a segment", ["/a;x=1/b", "/a;", "/a%20/b", "/a%20", "/a./b", "/a.", "/a../b", "/a%c2%a0/b"]],
    ["a semicolon is escaped", ["/a%3b/x", "/a%3Bx=1/b"]],
    ["a segment begins with a space", ["/%20a", "/x/%20a/b", "/%e3%80%80a"]],
    ["letters are not in their usual form", ["/%ef%bd%81dmin", "/%e2%84%aa", "/%c5%bf", "/cafe%cc%81"]],
    ["a file is named by its stream or its short name", ["/a::$DATA/x", "/a%3a%3a$DATA", "/a:$i30", "/admin~1/x"]],
  ])("where %s", (_, paths) => {
    for (const path of paths) expect([path, isLoosePath(path)]).toEqual([path, true]);
  });

  test("also where its escapes mean nothing", () => {
    expect(isLoosePath("/%ff;")).toBe(true);
  });

  test.each(["/", "/a", "/a.b/c", "/.a", "/a%20b", "/a/", "/~me", "/v1/items:batch", "/caf%c3%a9"])(
    "but not %s",
    (path) => {
      expect(isLoosePath(path)).toBe(false);
    },
  );
});

describe("the path of a rule stands for", () => {
  test.each([
    ["/api", ["/api"], ["/api/", "/api/x", "/API", "/ap", "/apix"]],
    ["/api/", ["/api/"], ["/api", "/api/x"]],
    ["/", ["/"], ["/a"]],
    ["/api/*", ["/api/x", "/api/x.y"], ["/api", "/api/", "/api/x/y"]],
    ["/api/**", ["/api/", "/api/x", "/api/x/y/"], ["/api", "/apix", "/x/api/y"]],
    ["/**", ["/", "/a", "/a/b"], []],
    ["/**/x", ["/x", "/a/x", "/a/b/x"], ["/", "/a", "/x/", "/x/a"]],
    ["/a/**/b/*", ["/a/b/c", "/a/x/b/c", "/a/b/b/b", "/a/x/y/b/z"], ["/a/b", "/a/b/", "/a/b/c/d"]],
    [
      "/repos/*/x-*/issues",
      ["/repos/o/x-1/issues", "/repos/o/x-/issues"],
      ["/repos/o/y/issues", "/repos/o/p/x-1/issues"],
    ],
    ["/caf%C3%A9", ["/caf%c3%a9", "/caf%C3%A9"], ["/cafe"]],
    ["/a:b", ["/a:b", "/a%3Ab", "/a%3ab"], ["/ab"]],
    ["/%2Ax", ["/%2Ax", "/*x"], ["/ax"]],
    ["/*%2A", ["/a*", "/a%2a"], ["/ab"]],
  ])("%s: %j, and not %j", (pattern, those, others) => {
    for (const one of those) expect([one, matchesPath(pattern, one)]).toEqual([one, true]);
    for (const one of others) expect([one, matchesPath(pattern, one)]).toEqual([one, false]);
  });

  test("no odd path, even where any will do", () => {
    for (const odd of ["/a/../b", "/%2e", "/a%2fb", "//"]) expect(matchesPath("/**", odd)).toBe(false);
  });

  test("itself, and what lies below it with **", () => {
    fc.assert(
      fc.property(path, path, (one, other) => {
        expect(matchesPath(one, one)).toBe(true);
        expect(matchesPath("/**", one)).toBe(true);
        if (one !== "/") expect(matchesPath(`${one}/**`, `${one}${other}`)).toBe(true);
        if (one !== "/") expect(matchesPath(`${one}/**`, `${one}x${other}`)).toBe(false);
      }),
    );
  });

  test("what it says, where escapes mean nothing", () => {
    expect(pathMatcher("/%zz")(segmentsOf("/%zz"))).toBe(true);
    expect(pathMatcher("/a")(segmentsOf("/%zz"))).toBe(false);
  });

  test("little time, however often it could begin again", () => {
    const many = pathMatcher(`${"/**/a".repeat(20)}/b`);
    expect(many(segmentsOf("/a".repeat(2000)))).toBe(false);
    expect(pathMatcher(`/${"a*".repeat(50)}b`)(segmentsOf(`/${"a".repeat(5000)}`))).toBe(false);
  });
});

describe("the path of a rule is refused", () => {
  test.each([
    ["api", "does not begin with /"],
    ["/a**b", "has ** within a segment"],
    ["/***", "has ** within a segment"],
    ["/a/**/**", "has ** twice in a row"],
    ["/a/../b", "is spelled in a way that no request may be"],
    ["/a%2fb", "is spelled in a way that no request may be"],
    ["/a?b=*", "is spelled in a way that no request may be"],
    ["/a//b", "is spelled in a way that no request may be"],
    ["/é", "is spelled in a way that no request may be"],
  ])("where it is %s: it %s", (pattern, mistake) => {
    expect(pathMistake(pattern)).toBe(mistake);
  });

  test.each(["/", "/a", "/a/*", "/**", "/a/**/b", "/v1/*.json", "/%2A"])("but %s is right", (pattern) => {
    expect(pathMistake(pattern)).toBeNull();
  });
});

test.each([
  ["/v1/*", true],
  ["/v1/%2a", true],
  ["/v1/%zz*", true],
  ["/v1/star", false],
  ["/v1/%zz", false],
])("%s holds a star: %s", (path, expected) => {
  expect(hasStar(path)).toBe(expected);
});
