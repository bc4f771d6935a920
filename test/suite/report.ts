import { overBudget } from "./budget.ts";
import type { FileResult, SuiteResult } from "./results.ts";

/** The lines that a suite prints at its end. */
export function closingLines(result: SuiteResult): readonly string[] {
  const { files, passedAlone, suite, seconds } = result;
  const sum = (count: (file: FileResult) => number) => files.reduce((total, file) => total + count(file), 0);
  // A file that passed alone has neither failed nor skipped: a failed `beforeAll` skips the tests of its file.
  const judged = (count: number, file: FileResult) => (isAmong(passedAlone, file) ? 0 : count);
  const failed = sum((file) => judged(file.failures.length, file));
  const skipped = sum((file) => judged(file.skipped, file));
  const alone = passedAlone.map(({ path }) => path).join(", ");
  return [
    ...files.flatMap((file) => failureLines(file, isAmong(passedAlone, file))),
    ...(suite === "fast" ? overBudget("make test", seconds) : []),
    `tests: ${sum((file) => file.passed)} passed, ${failed} failed, ${skipped} skipped` +
      (alone === "" ? "" : `; passed alone: ${alone}`),
  ];
}

/** Killed workers fail their files, which says nothing. */
export function interruptedLine({ files }: SuiteResult): string {
  return `interrupted: ${files.reduce((sum, { passed }) => sum + passed, 0)} tests had passed`;
}

function failureLines(file: FileResult, hasPassedAlone: boolean): readonly string[] {
  const verdict = hasPassedAlone ? "passed alone" : "failed";
  return file.failures.map(({ test, message }) => `${verdict}: ${file.path}: ${test}: ${message}`);
}

function isAmong(files: readonly FileResult[], { path }: FileResult): boolean {
  return files.some((file) => file.path === path);
}

/** The slowest files of all suites. */
export function slowest(results: readonly SuiteResult[], count: number): readonly string[] {
  return results
    .flatMap(({ files }) => files)
    .sort((a, b) => b.seconds - a.seconds)
    .slice(0, count)
    .map(({ path, seconds }) => `${seconds.toFixed(1).padStart(7)} s  ${path}`);
}
