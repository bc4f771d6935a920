// @module-tag security
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { readNamedFile, readPlainFile } from "../../src/machine/plain-file.ts";

const root = mkdtempSync(join(tmpdir(), "podbot-plain-"));
afterAll(() => rmSync(root, { recursive: true }));
const at = (name: string) => join(root, name);
writeFileSync(at("file"), "12345");
mkdirSync(at("directory"));
symlinkSync("file", at("link"));
execFileSync("mkfifo", [at("pipe")]);
execFileSync("truncate", ["-s", "100G", at("sparse")]);

test("a plain file is read, up to what it may hold", () => {
  expect(readPlainFile(at("file"), 5)).toEqual({ kind: "read", bytes: Buffer.from("12345") });
  expect(readPlainFile(at("file"), 4)).toEqual({ kind: "too-large" });
  expect(readPlainFile("/proc/self/status", 1 << 16)).toMatchObject({ kind: "read" });
  expect(readPlainFile("/proc/self/status", 10)).toEqual({ kind: "too-large" });
});

test.each([
  ["pipe", "special"],
  ["directory", "special"],
  ["link", "link"],
  ["sparse", "too-large"],
  ["nothing", "absent"],
  ["file/below", "absent"],
])("what an agent may put in its place is neither waited for nor followed: %s", (name, kind) => {
  expect(readPlainFile(at(name), 1 << 20)).toEqual({ kind });
});

test("a device is not read", () => {
  expect(readPlainFile("/dev/zero", 1 << 20)).toEqual({ kind: "special" });
});

test("a file that the owner names may be a link, and is read by the same measure", () => {
  expect(readNamedFile(at("link"), 5)).toBe("12345");
  for (const name of ["pipe", "directory", "sparse", "nothing"]) expect(readNamedFile(at(name), 1 << 20)).toBeNull();
});
