// @module-tag security
import { expect, test } from "vitest";
import { isVersionOf } from "../../src/credentials/masked-files.ts";

test.each([
  [".claude.json.backup", ".claude.json", true],
  [".claude.json.backup.1763", ".claude.json", true],
  ["auth.json~", "auth.json", true],
  ["auth.json", "auth.json", false],
  ["auth.jsonl", "auth.json", false],
  ["other.json.bak", "auth.json", false],
])("whether %s is another version of %s: %s", (name, file, is) => {
  expect(isVersionOf(name, file)).toBe(is);
});
