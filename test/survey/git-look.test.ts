import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { lookAgain, lookForRepositories } from "../../src/survey/git-look.ts";

const root = mkdtempSync(join(tmpdir(), "podbot-look-"));
afterAll(() => rmSync(root, { recursive: true }));

function workspace(...directories: readonly string[]): string {
  const at = mkdtempSync(join(root, "w-"));
  for (const directory of directories) mkdirSync(join(at, directory), { recursive: true });
  return at;
}

describe("a short look for repositories", () => {
  test("finds those with and without .git, two levels deep", () => {
    const at = workspace(
      "a/.git/refs",
      "b/c/refs",
      "b/c/objects",
      "d/e/f/.git/refs",
      "node_modules/x/.git/refs",
      "g/.git",
    );
    writeFileSync(join(at, "b/c/HEAD"), "");
    expect(lookForRepositories(at)).toEqual({ paths: [join(at, "a"), join(at, "b/c")], depth: 2 });
  });

  test("is less deep where there is much, and says how deep, so that a second one can be like it", () => {
    const at = workspace(".git/refs", "x/.git/refs", ...Array.from({ length: 150 }, (_, number) => `y/${number}`));
    expect(lookForRepositories(at)).toEqual({ paths: [at, join(at, "x")], depth: 1 });
    expect(lookAgain(at, { paths: [], depth: 0 })).toEqual([at]);
    expect(lookAgain(at, { paths: [], depth: 2 })).toEqual([at, join(at, "x")]);
  });

  test("says that it cannot look as far as before", () => {
    const at = workspace("x/.git/refs", ...Array.from({ length: 2_000 }, (_, number) => `${number}`));
    expect(lookAgain(at, { paths: [], depth: 1 })).toBeNull();
    expect(lookForRepositories(at)).toEqual({ paths: [], depth: 0 });
  });

  test("looks at the first level where there is much", () => {
    const at = workspace("x/.git/refs", ...Array.from({ length: 151 }, (_, number) => `${number}`));
    expect(lookForRepositories(at)).toEqual({ paths: [join(at, "x")], depth: 1 });
  });
});
