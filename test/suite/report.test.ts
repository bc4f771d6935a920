import { describe, expect, test } from "vitest";
import { overBudget } from "./budget.ts";
import { closingLines, slowest } from "./report.ts";
import type { FileResult, SuiteResult } from "./results.ts";

const file = (path: string, more: Partial<FileResult> = {}): FileResult => ({
  path,
  seconds: 1,
  passed: 2,
  skipped: 0,
  isSecurity: false,
  failures: [],
  ...more,
});
const result = (more: Partial<SuiteResult> = {}): SuiteResult => ({
  suite: "fast",
  passed: true,
  seconds: 10,
  files: [file("a"), file("b", { skipped: 1 })],
  passedAlone: [],
  ...more,
});
const late = file("c", { passed: 1, failures: [{ test: "waits", message: "in vain" }] });

describe("the closing lines of a suite", () => {
  test("count its tests", () => {
    expect(closingLines(result())).toEqual(["tests: 4 passed, 0 failed, 1 skipped"]);
  });

  test("name each test that failed", () => {
    expect(closingLines(result({ files: [file("a"), late], passed: false }))).toEqual([
      "failed: c: waits: in vain",
      "tests: 3 passed, 1 failed, 0 skipped",
    ]);
  });

  test("name what passed alone, and what had failed there", () => {
    expect(closingLines(result({ files: [file("a"), late], passedAlone: [late] }))).toEqual([
      "passed alone: c: waits: in vain",
      "tests: 3 passed, 0 failed, 0 skipped; passed alone: c",
    ]);
  });

  test("are loud above the budget", () => {
    expect(closingLines(result({ seconds: 241 }))[0]).toMatch(/^!!! OVER BUDGET: make test took 4\.0 minutes/);
    expect(closingLines(result({ seconds: 241, suite: "e2e" }))).toHaveLength(1);
    expect(overBudget(".ci/run", 15 * 60)).toEqual([]);
    expect(overBudget(".ci/run", 15 * 60 + 1)).toHaveLength(1);
  });
});

test("the slowest files are those of all suites", () => {
  const other = result({ suite: "e2e", files: [file("slow", { seconds: 100 })] });
  expect(slowest([result(), other], 2)).toEqual(["  100.0 s  slow", "    1.0 s  a"]);
});
