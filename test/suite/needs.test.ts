import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { missingLines, needs } from "./needs.ts";

const root = join(import.meta.dirname, "../..");
const names = (path: string, env: Readonly<Record<string, string>>) =>
  needs(path, env)
    .filter(({ isThere }) => !isThere)
    .map(({ what }) => what);

test("a machine that runs these tests has what they need", () => {
  const missing = names(root, { PATH: process.env["PATH"] ?? "" });
  expect(missing.filter((what) => !["keytool", "root", "libfaketime"].includes(what))).toEqual([]);
});

test("what is missing is told with its cost and its cure", () => {
  const empty = mkdtempSync(join(tmpdir(), "empty-"));
  expect(names(empty, { PATH: empty })).toEqual(expect.arrayContaining(["a build", "bwrap", "tmux", "curl", "fish"]));
  const need = { what: "bwrap", isThere: false, without: "tests fail", fix: "install it" };
  expect(missingLines([need, { ...need, isThere: true }])).toEqual(["missing here: bwrap: tests fail (install it)"]);
});
