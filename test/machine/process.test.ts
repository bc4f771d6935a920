import { userInfo } from "node:os";
import { expect, test } from "vitest";
import { isOurUser, isSubordinate } from "../../src/machine/process.ts";

test("we are one user, and nobody is none", () => {
  const own = process.geteuid?.() as number;
  expect([own, own + 1, undefined].map(isOurUser)).toEqual([true, false, false]);
});

test.each([
  ["by name", userInfo().username],
  ["by number", String(process.geteuid?.())],
])("users that are subordinate to ours are known, %s", (_, name) => {
  const table = `other:500000:65536\n${name}:100000:65536\n\nodd\n${name}:300000:2\n`;
  const known = (uid: number) => isSubordinate(uid, table);
  expect([100_000, 165_535, 300_000, 300_001].map(known)).toEqual([true, true, true, true]);
  expect([0, 99_999, 165_536, 300_002, 500_000].map(known)).toEqual([false, false, false, false, false]);
});
