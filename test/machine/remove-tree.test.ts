// @module-tag security
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { removeTree } from "../../src/machine/remove-tree.ts";

function place(): string {
  const directory = mkdtempSync(join(tmpdir(), "remove-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

test("all goes that lies at a path, whatever its rights and its depth; of links, only the link", () => {
  const directory = place();
  const tree = join(directory, "tree");
  mkdirSync(join(tree, "locked/in"), { recursive: true });
  writeFileSync(join(tree, "locked/in/file"), "");
  writeFileSync(join(directory, "stays"), "", { mode: 0o600 });
  symlinkSync(join(directory, "stays"), join(tree, "link"));
  symlinkSync(directory, join(tree, "locked/above"));
  chmodSync(join(tree, "locked"), 0);
  removeTree(tree);
  expect(existsSync(tree)).toBe(false);
  expect(existsSync(join(directory, "stays"))).toBe(true);
  removeTree(tree);
});

test("what cannot be removed is told", () => {
  expect(() => removeTree("/proc/self/status")).toThrow();
});
