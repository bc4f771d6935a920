// @module-tag security
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { Reader } from "../../src/survey/reader.ts";
import { findWay } from "../../src/survey/way.ts";

const root = realpathSync(mkdtempSync(join(tmpdir(), "podbot-way-")));
afterAll(() => rmSync(root, { recursive: true }));
mkdirSync(join(root, "a/b"), { recursive: true });
symlinkSync("a/b", join(root, "link"));
symlinkSync(join(root, "a"), join(root, "absolute"));
symlinkSync("a/gone", join(root, "dangling"));
symlinkSync("circle", join(root, "circle"));

const way = (path: string) => {
  const { end, missing, steps } = findWay(`${root}/${path}`, new Reader());
  const short = (found: string) => found.slice(root.length + 1);
  return {
    end: end && short(end),
    missing: missing && { ...missing, path: short(missing.path) },
    steps: steps.map(short),
  };
};

describe("the way of a path is that of the kernel", () => {
  test.each<[string, string, readonly string[]]>([
    ["a/b", "a/b", []],
    ["link", "a/b", ["link"]],
    ["absolute/b", "a/b", ["absolute"]],
    ["link/..", "a", ["link", "a/b"]],
    ["a/b/..//./b", "a/b", ["a/b"]],
  ])("%s", (path, end, steps) => {
    expect(way(path)).toEqual({ end, missing: null, steps });
    expect(realpathSync.native(`${root}/${path}`)).toBe(join(root, end));
  });

  test.each<[string, string, boolean, readonly string[]]>([
    ["none", "none", true, []],
    ["none/below", "none", false, []],
    ["dangling", "a/gone", true, ["dangling"]],
    ["dangling/below", "a/gone", false, ["dangling"]],
  ])("%s, of which a name is missing", (path, missing, isLast, steps) => {
    expect(way(path)).toEqual({ end: null, missing: { path: missing, isLast }, steps });
  });

  test("in a circle leads nowhere", () => {
    expect(way("circle")).toMatchObject({ end: null, missing: null });
  });

  test("is refused where a name is not UTF-8", () => {
    symlinkSync(Buffer.from([0x68, 0xe9]), join(root, "latin"));
    for (const path of ["latin", "h\ufffd"]) expect(() => way(path)).toThrow(/not UTF-8/);
  });
});
