import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { readGitlinks } from "../../src/survey/git-index.ts";

const root = mkdtempSync(join(tmpdir(), "podbot-index-"));
afterAll(() => rmSync(root, { recursive: true }));

/** An index that git itself has written, with files of many lengths and two gitlinks. */
function indexOf(version: number, format: "sha1" | "sha256"): Buffer {
  const directory = mkdtempSync(join(root, "r-"));
  const git = (words: readonly string[], input = "") =>
    execFileSync("git", ["-C", directory, ...words], { input, encoding: "utf8", stdio: "pipe" }).trim();
  git(["init", "-q", `--object-format=${format}`]);
  const blob = git(["hash-object", "-w", "--stdin"], "x");
  const names = Array.from({ length: 20 }, (_, number) => `dir/${"n".repeat(number + 1)}`);
  const lines = [
    ...names.map((name) => `100644 ${blob}\t${name}`),
    `160000 ${"1".repeat(blob.length)}\tlibs/sub`,
    `160000 ${"2".repeat(blob.length)}\té/other`,
  ];
  git(["-c", `index.version=${version}`, "update-index", "--index-info"], `${lines.join("\n")}\n`);
  git(["update-index", "--index-version", `${version}`]);
  if (version === 3) git(["update-index", "--skip-worktree", names[3] as string]);
  return readFileSync(join(directory, ".git/index"));
}

describe("the other repositories that an index names", () => {
  test.each([
    [2, "sha1"],
    [3, "sha1"],
    [4, "sha1"],
    [2, "sha256"],
    [4, "sha256"],
  ] as const)("are read from version %i with %s", (version, format) => {
    const index = indexOf(version, format);
    expect(index.readUInt32BE(4)).toBe(version);
    expect(readGitlinks(index, format === "sha1" ? 20 : 32)).toEqual(["libs/sub", "é/other"]);
  });

  test("are none where it is damaged, wherever that is", () => {
    const index = indexOf(4, "sha1");
    expect(readGitlinks(Buffer.from("no index at all"), 20)).toEqual([]);
    for (let size = 0; size < index.length; size += 7) {
      expect(readGitlinks(index.subarray(0, size), 20).length).toBeLessThanOrEqual(2);
    }
    const filled = Buffer.from(index).fill(0xff, 60);
    expect(readGitlinks(filled, 20)).toEqual([]);
  });
});
