// @module-tag security
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { followWay, readOwnersFile } from "../../src/machine/owners-file.ts";

const root = realpathSync(mkdtempSync(join(tmpdir(), "podbot-owners-")));
afterAll(() => rmSync(root, { recursive: true }));

const at = (path: string) => join(root, path);
for (const directory of ["own/deep", "theirs/sub"]) mkdirSync(at(directory), { recursive: true });
writeFileSync(at("own/deep/file"), "owner's");
writeFileSync(at("theirs/file"), "theirs");
symlinkSync("deep/file", at("own/to-file"));
symlinkSync(at("own/deep"), at("own/absolute"));
symlinkSync("../own/./deep/../deep", at("own/round"));
symlinkSync("../theirs/file", at("own/to-theirs"));
symlinkSync("../theirs", at("own/to-directory"));
symlinkSync("../own/deep/file", at("theirs/back"));
symlinkSync("circle", at("own/circle"));
symlinkSync("nothing", at("own/dangling"));
execFileSync("mkfifo", [at("own/pipe")]);

const isTheirs = (path: string) => `${path}/`.startsWith(`${at("theirs")}/`);

describe("the way of a path", () => {
  test.each([
    ["own/deep/file", "own/deep/file"],
    ["own/to-file", "own/deep/file"],
    ["own/absolute/file", "own/deep/file"],
    ["own/round/file", "own/deep/file"],
    ["own", "own"],
  ])("%s is the owner's alone, and leads to %s", (path, real) => {
    expect(followWay(at(path), isTheirs)).toEqual({ kind: "owners", path: at(real) });
  });

  test.each([
    ["theirs/file", "theirs"],
    ["theirs/nothing", "theirs"],
    ["own/to-theirs", "theirs"],
    ["own/to-directory/sub", "theirs"],
    // It leads back to the owner's now. The next moment it need not.
    ["own/to-directory/back", "theirs"],
  ])("%s leads through what the agent may write", (path, through) => {
    expect(followWay(at(path), isTheirs)).toEqual({ kind: "agents", at: at(through) });
  });

  test.each(["own/nothing", "own/dangling", "own/circle", "own/deep/file/x"])("%s leads nowhere", (path) => {
    expect(followWay(at(path), isTheirs)).toEqual({ kind: "nowhere" });
  });

  test("begins where the process stands, if it does not say otherwise", () => {
    expect(followWay(".", () => false)).toEqual({ kind: "owners", path: realpathSync(".") });
  });
});

describe("of a file of the owner's", () => {
  const read = (path: string, largest = 100) => {
    const file = readOwnersFile(path, isTheirs, largest);
    return file.kind === "owners" ? `${file.path}: ${file.bytes}` : file.kind;
  };

  test("is read what it holds, by the place where it really lies", () => {
    expect(read(at("own/to-file"))).toBe(`${at("own/deep/file")}: owner's`);
    expect(read(at("own/to-file"), 7)).toBe(`${at("own/deep/file")}: owner's`);
    expect(read("/proc/sys/kernel/ostype")).toBe("/proc/sys/kernel/ostype: Linux\n");
  });

  test.each([
    ["what is too large", "own/deep/file", 6],
    ["a pipe", "own/pipe", 100],
    ["a directory", "own/deep", 100],
    ["what is not there", "own/nothing", 100],
  ])("%s counts as missing", (_, path, largest) => {
    expect(read(at(path), largest)).toBe("nowhere");
  });

  test("what the kernel makes up is bounded, too, though it says that it is empty", () => {
    expect(read("/proc/sys/kernel/ostype", 5)).toBe("nowhere");
    expect(read("/dev/zero")).toBe("nowhere");
  });

  test("nothing is read that the agent has a say in", () => {
    expect(read(at("theirs/file"))).toBe("agents");
    expect(read(at("own/to-directory/back"))).toBe("agents");
  });
});
