import { relative } from "node:path";
import type { TestModule } from "vitest/node";
import { readIfThere } from "./read.ts";

export const suiteNames = ["fast", "e2e"] as const;
export type SuiteName = (typeof suiteNames)[number];

/** The result of one run of a suite. `.ci/run` and `make soak` read it from a file. */
export interface SuiteResult {
  readonly suite: SuiteName;
  readonly passed: boolean;
  readonly seconds: number;
  readonly files: readonly FileResult[];
  /** Files that failed among the others, with their failures there, and passed when they ran alone. */
  readonly passedAlone: readonly FileResult[];
}

export interface FileResult {
  readonly path: string;
  readonly seconds: number;
  readonly passed: number;
  readonly skipped: number;
  /** Whether it guards a security promise: its first line is `// @module-tag security`. */
  readonly isSecurity: boolean;
  readonly failures: readonly Failure[];
}

export interface Failure {
  readonly test: string;
  readonly message: string;
}

const itself = "the file itself";
const lostWorker = { early: "its worker did not start", late: "its worker died" } as const;

export function hasLostWorker({ failures }: FileResult): boolean {
  const messages: readonly string[] = Object.values(lostWorker);
  return failures.some(({ test, message }) => test === itself && messages.includes(message));
}

/** The result of a file of which Vitest knows nothing, because its worker could not start. */
export function fileThatNeverRan(root: string, moduleId: string): FileResult {
  return {
    path: relative(root, moduleId),
    seconds: 0,
    passed: 0,
    skipped: 0,
    isSecurity: isSecurity(moduleId),
    failures: [{ test: itself, message: lostWorker.early }],
  };
}

/** The result of one file, including the errors that nothing caught while it ran. */
export function fileResult(module: TestModule, uncaught: readonly unknown[]): FileResult {
  const tests = [...module.children.allTests()];
  const counted = (state: string) => tests.filter((test) => test.result().state === state).length;
  const { prepareDuration, collectDuration, setupDuration, environmentSetupDuration, duration } = module.diagnostic();
  const failures = [
    ...tests
      .filter((test) => test.result().state === "failed")
      .map((test) => ({ test: test.fullName, message: firstLine(test.result().errors?.[0]) })),
    ...[...module.errors(), ...suiteErrors(module), ...uncaught.filter((error) => isOf(module, error))].map(
      (error) => ({
        test: itself,
        message: firstLine(error),
      }),
    ),
  ];
  // Vitest reports a file whose worker died as neither passed nor failed, or with tests that are still pending.
  const hasPassed = module.state() === "passed" || module.state() === "skipped";
  const hasDied = (failures.length === 0 && !hasPassed) || counted("pending") > 0;
  return {
    path: module.relativeModuleId,
    seconds: (prepareDuration + collectDuration + setupDuration + environmentSetupDuration + duration) / 1_000,
    passed: counted("passed"),
    skipped: counted("skipped"),
    isSecurity: isSecurity(module.moduleId),
    failures: hasDied ? [...failures, { test: itself, message: lostWorker.late }] : failures,
  };
}

/** Read from the file, because a file that fails while it is imported has no tests. */
function isSecurity(moduleId: string): boolean {
  return readIfThere(moduleId).startsWith("// @module-tag security\n");
}

function suiteErrors(module: TestModule): readonly unknown[] {
  return [...module.children.allSuites()].flatMap((suite) => suite.errors());
}

/** Vitest notes which file ran when an error was not caught. */
function isOf(module: TestModule, error: unknown): boolean {
  return (error as { readonly VITEST_TEST_PATH?: string }).VITEST_TEST_PATH === module.moduleId;
}

export function firstLine(error: unknown): string {
  const { message = String(error) } = (error ?? {}) as { readonly message?: string };
  return message.split("\n", 1)[0]?.slice(0, 200) ?? "";
}
