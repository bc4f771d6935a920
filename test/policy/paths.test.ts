import { isAbsolute, normalize } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PolicyError } from "../../src/errors.ts";
import {
  byDepth,
  depthOf,
  directoriesBetween,
  expandPath,
  isBelow,
  isWithin,
  nameOf,
  parentOf,
} from "../../src/policy/paths.ts";
import { failure } from "../failure.ts";

const from = { home: "/home/u", cwd: "/home/u/project" };
const segment = fc.stringMatching(/^[a-c.~*]{1,3}$/).filter((text) => text !== "." && text !== "..");
const path = fc.array(segment, { maxLength: 4 }).map((segments) => `/${segments.join("/")}`);

describe("a path as it is written", () => {
  test.each([
    ["/", "/"],
    ["/etc", "/etc"],
    ["/etc/", "/etc"],
    ["//etc///ssl//", "/etc/ssl"],
    ["/a/../b/./c", "/b/c"],
    ["/..", "/"],
    ["/a/..", "/"],
    ["~", "/home/u"],
    ["~/", "/home/u"],
    ["~/x", "/home/u/x"],
    ["~/../v", "/home/v"],
    ["~//x/", "/home/u/x"],
    [".", "/home/u/project"],
    ["./", "/home/u/project"],
    ["..", "/home/u"],
    ["../other", "/home/u/other"],
    ["src", "/home/u/project/src"],
    ["./src/", "/home/u/project/src"],
    ["a~", "/home/u/project/a~"],
    ["./~user", "/home/u/project/~user"],
    ["...", "/home/u/project/..."],
    [".env", "/home/u/project/.env"],
    ["a..b/.c.", "/home/u/project/a..b/.c."],
    ["**/.env*", "/home/u/project/**/.env*"],
    ["$HOME/x", "/home/u/project/$HOME/x"],
    [" ", "/home/u/project/ "],
  ])("%j means %s", (written, expected) => {
    expect(expandPath(written, from)).toBe(expected);
  });

  test.each([
    ["", "it is empty"],
    ["a\0b", "NUL"],
    ["~user", "~user"],
    ["~user/x", "~user"],
    ["~~", "~user"],
  ])("%j is refused", (written, why) => {
    const error = failure(PolicyError, () => expandPath(written, from));
    expect(error.code).toBe("PATH_REFUSED");
    expect(error.message).toContain(why);
    expect(error.hint).not.toBe("");
  });

  test("becomes absolute and normal, whatever it is", () => {
    const written = fc.string({ unit: fc.constantFrom("a", ".", "/", "~", "*", " "), minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(
        written.filter((text) => !/^~[^/]/.test(text)),
        (text) => {
          const expanded = expandPath(text, from);
          expect(isAbsolute(expanded)).toBe(true);
          expect(normalize(expanded)).toBe(expanded);
          if (expanded !== "/") expect(expanded.endsWith("/")).toBe(false);
          expect(expandPath(expanded, from)).toBe(expanded);
        },
      ),
    );
  });
});

describe("where a path lies", () => {
  test.each([
    ["/a", "/a", { within: true, below: false }],
    ["/a/b", "/a", { within: true, below: true }],
    ["/a/b/c", "/a", { within: true, below: true }],
    ["/ab", "/a", { within: false, below: false }],
    ["/", "/a", { within: false, below: false }],
    ["/a", "/a/b", { within: false, below: false }],
    ["/a", "/", { within: true, below: true }],
    ["/", "/", { within: true, below: false }],
  ])("%s against %s: %j", (one, other, { within, below }) => {
    expect(isWithin(one, other)).toBe(within);
    expect(isBelow(one, other)).toBe(below);
  });

  test.each([
    ["/", "/", "", 0],
    ["/a", "/", "a", 1],
    ["/a/b.c", "/a", "b.c", 2],
  ])("the parent of %s is %s, its name %j, its depth %i", (one, parent, name, depth) => {
    expect(parentOf(one)).toBe(parent);
    expect(nameOf(one)).toBe(name);
    expect(depthOf(one)).toBe(depth);
  });

  test.each([
    ["/", "/a/b/c", ["/a", "/a/b"]],
    ["/a", "/a/b/c/d", ["/a/b", "/a/b/c"]],
    ["/a", "/a/b", []],
    ["/a", "/a", []],
    ["/", "/", []],
    ["/x", "/a/b", []],
  ])("between %s and %s lie %j", (ancestor, one, expected) => {
    expect(directoriesBetween(ancestor, one)).toEqual(expected);
  });

  test("a path is below its parent, and below all that lie between", () => {
    fc.assert(
      fc.property(
        path.filter((one) => one !== "/"),
        (one) => {
          expect(isBelow(one, parentOf(one))).toBe(true);
          expect(isWithin(parentOf(one), one)).toBe(false);
          expect(depthOf(one)).toBe(depthOf(parentOf(one)) + 1);
          expect(directoriesBetween("/", one)).toHaveLength(depthOf(one) - 1);
          for (const directory of directoriesBetween("/", one)) expect(isBelow(one, directory)).toBe(true);
        },
      ),
    );
  });
});

describe("the order of mounts", () => {
  test("puts parents first, then goes by name", () => {
    const sorted = ["/", "/a", "/b", "/a/z", "/b/a", "/a/a/a"];
    expect(sorted.toReversed().sort(byDepth)).toEqual(sorted);
    expect(byDepth("/a", "/a")).toBe(0);
  });

  test("never puts a directory after what lies in it", () => {
    fc.assert(
      fc.property(fc.array(path), (paths) => {
        const sorted = paths.toSorted(byDepth);
        for (const [at, one] of sorted.entries()) {
          for (const later of sorted.slice(at)) expect(isBelow(one, later)).toBe(false);
        }
      }),
    );
  });
});
