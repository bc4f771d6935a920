// @module-tag security
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { knownWays } from "../../../src/wall/engine/known-ways.ts";

function newDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "podbot-test-ways-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return join(directory, "images");
}

test("what was seen of an image is known of it later, and of no other", () => {
  const directory = newDirectory();
  const first = knownWays(directory, "sha256:one");
  expect(first.has("/work")).toBe(false);
  first.add(["/work", "/run"]);
  expect(first.has("/work")).toBe(true);
  expect(["/work", "/run", "/other"].map((path) => knownWays(directory, "sha256:one").has(path))).toEqual([
    true,
    true,
    false,
  ]);
  expect(knownWays(directory, "sha256:two").has("/work")).toBe(false);
  expect(statSync(directory).mode & 0o777).toBe(0o700);
});

test.each([
  ["damaged", "[1"],
  ["of another kind", '{"/work":true}'],
  ["not of paths", "[1]"],
  ["too long", `["/work"]${" ".repeat(300_000)}`],
])("what is %s is nothing", (_, content) => {
  const directory = newDirectory();
  knownWays(directory, "sha256:one").add(["/work"]);
  const [name = ""] = readdirSync(directory);
  writeFileSync(join(directory, name), content);
  expect(knownWays(directory, "sha256:one").has("/work")).toBe(false);
});

test("a directory that cannot be written costs a look, and no more", () => {
  const directory = newDirectory();
  writeFileSync(directory, "");
  const ways = knownWays(directory, "sha256:one");
  ways.add(["/work"]);
  expect(ways.has("/work")).toBe(true);
});
