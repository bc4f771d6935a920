import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { readGitlinks } from "../../src/survey/git-index.ts";

const root = mkdtempSync(join(tmpdir(), "podbot-index-"));
afterAll(() => rmSync(root, { recursive: true }));

/** An index that git itself has written, with files of many lengths and two gitlinks. */
function indexOf(version: number, format: "sha1" | "sha256", settings: readonly string[] = []): Buffer {
  const directory = mkdtempSync(join(root, "r-"));
  const git = (words: readonly string[], input = "") =>
    execFileSync("git", ["-C", directory, ...words], { input, encoding: "utf8", stdio: "pipe" }).trim();
  git(["init", "-q", `--object-format=${format}`]);
  const blob = git(["hash-object", "-w", "--stdin"], "x");
  const names = Array.from({ length: 20 }, (_, number) => `dir/${"n".repeat(number + 1)}`);
  const set = settings.flatMap((setting) => ["-c", setting]);
  const lines = [
    ...names.map((name) => `100644 ${blob}\t${name}`),
    `160000 ${"1".repeat(blob.length)}\tlibs/sub`,
    `160000 ${"2".repeat(blob.length)}\té/other`,
  ];
  git([...set, "-c", `index.version=${version}`, "update-index", "--index-info"], `${lines.join("\n")}\n`);
  git([...set, "update-index", "--index-version", `${version}`]);
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

  test("are not known where it is damaged, wherever that is", () => {
    const index = indexOf(4, "sha1");
    expect(readGitlinks(Buffer.from("no index at all"), 20)).toBeNull();
    for (let size = 0; size < index.length - 200; size += 7)
      expect(readGitlinks(index.subarray(0, size), 20)).toBeNull();
    expect(readGitlinks(Buffer.from(index).fill(0xff, 60), 20)).toBeNull();
  });

  test.each([2, 4])("are not known where a name holds a NUL, in version %i", (version) => {
    const index = indexOf(version, "sha1");
    expect(readGitlinks(hidden(index), 20)).toBeNull();
  });

  test("are read where git's threads have a table of offsets, unless it leads elsewhere", () => {
    const index = indexOf(2, "sha1", ["index.threads=2"]);
    const table = index.lastIndexOf("IEOT");
    const end = index.lastIndexOf("EOIE");
    expect(table).toBeGreaterThan(0);
    expect(readGitlinks(index, 20)).toEqual(["libs/sub", "é/other"]);
    for (const at of [table + 12, table + 16, end + 8]) {
      const led = Buffer.from(index);
      led.writeUInt32BE(led.readUInt32BE(at) + 8, at);
      expect(readGitlinks(led, 20)).toBeNull();
    }
  });
});

/** The last byte of a directory's name becomes a NUL, which git takes for a part of it. */
function hidden(index: Buffer): Buffer {
  const copy = Buffer.from(index);
  copy[copy.indexOf("libs/sub") + 2] = 0;
  return copy;
}
