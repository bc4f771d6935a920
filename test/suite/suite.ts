import { spawnSync } from "node:child_process";
import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { TestModule, TestSpecification, Vitest } from "vitest/node";
import { createVitest } from "vitest/node";
import { aloneMinutes } from "./budget.ts";
import { type CoverageMap, uncovered } from "./coverage.ts";
import { endRun, erase, eraseDeadRuns } from "./erase.ts";
import { type Hold, onInterrupt } from "./interrupt.ts";
import { closingLines, interruptedLine } from "./report.ts";
import {
  type FileResult,
  fileResult,
  fileThatNeverRan,
  firstLine,
  hasLostWorker,
  type SuiteName,
  type SuiteResult,
} from "./results.ts";
import { enterRun, newRun, type Run } from "./run.ts";
import { cancel, failingLoudly, killWorkers } from "./setup.ts";
import { Watchdog } from "./watchdog.ts";

export interface SuiteOptions {
  readonly suite: SuiteName;
  /** Files or folders; none is all of them. */
  readonly only: readonly string[];
  /** CI forbids skipped tests and runs each failed file again alone. */
  readonly isCI: boolean;
  /** Shuffles the files; null keeps Vitest's order. */
  readonly seed: number | null;
  readonly root: string;
  /** Where the result is written. */
  readonly resultFile: string;
}

/** How often in a row a file that failed among the others must pass alone. */
const timesAlone = { ordinary: 1, security: 3 };

/** Runs a suite to its end and prints the result. Returns 0 if all tests passed and nothing was left behind. */
export async function runSuite(options: SuiteOptions): Promise<number> {
  await eraseDeadRuns();
  const run = newRun();
  // Before Vitest is created, which reads TMPDIR for a directory of its own.
  enterRun(run);
  const interruption = new AbortController();
  const held = onInterrupt((signal) => interruption.abort(signal));
  using watchdog = new Watchdog(run);
  try {
    const { result, problems } = await runVitest(options, run, interruption.signal, held, watchdog);
    if (!result.passed) process.exitCode = 1;
    const lines = interruption.signal.aborted ? [interruptedLine(result)] : [...problems, ...closingLines(result)];
    process.stdout.write(`${lines.join("\n")}\n`);
    mkdirSync(dirname(options.resultFile), { recursive: true });
    writeFileSync(options.resultFile, JSON.stringify(result));
  } finally {
    // Tests that were interrupted or killed leave processes, which is no defect of theirs.
    const isCutShort = interruption.signal.aborted || watchdog.hasKilled;
    await failingLoudly(() => (isCutShort ? eraseAndTell(run) : endRun(run)))();
    giveBack(options.root);
    held[Symbol.dispose]();
    if (interruption.signal.aborted) process.kill(process.pid, interruption.signal.reason as NodeJS.Signals);
  }
  return Number(process.exitCode);
}

async function eraseAndTell(run: Run): Promise<void> {
  const left = await erase(run);
  process.stdout.write(left.map((what) => `ended with the tests that were cut short: ${what}\n`).join(""));
}

/** The slow suite runs as root, also for a user who called sudo: what it built is that user's to remove. */
function giveBack(root: string): void {
  const { uid } = statSync(root);
  if (process.getuid?.() === 0 && uid !== 0) spawnSync("chown", ["-R", `${uid}`, join(root, ".make")]);
}

interface Judged {
  readonly result: SuiteResult;
  /** Why the suite failed, besides tests that failed. */
  readonly problems: readonly string[];
}

async function runVitest(
  options: SuiteOptions,
  run: Run,
  interruption: AbortSignal,
  held: Hold,
  watchdog: Watchdog,
): Promise<Judged> {
  const began = performance.now();
  const coverage: CoverageMap[] = [];
  const vitest = await createVitest("test", {
    root: options.root,
    run: true,
    watch: false,
    ...(options.suite === "e2e" ? { mode: "e2e" } : {}),
    ...(options.seed === null ? {} : { sequence: { shuffle: { files: true }, seed: options.seed } }),
    ...(takesCoverage(options)
      ? { coverage: { enabled: true, reportsDirectory: join(run.directory, "coverage") } }
      : {}),
    reporters: [
      "default",
      watchdog,
      {
        onCoverage: (map: unknown) => void coverage.push(map as CoverageMap),
        // Vitest forgets a cancellation that comes while it starts.
        onTestModuleQueued: () => void (interruption.aborted && cancel(vitest)),
      },
    ],
  });
  const rejections: unknown[] = [];
  const note = (error: unknown) => void rejections.push(error);
  try {
    held.silenceOthers();
    // Vitest's own listener ends this process, which then removes nothing.
    process.removeAllListeners("unhandledRejection").on("unhandledRejection", note);
    interruption.addEventListener("abort", () => cancel(vitest));
    interruption.throwIfAborted();
    const started = vitest.start([...options.only]);
    const { testModules, unhandledErrors } = await unlessStuck(started, vitest, interruption);
    const all = [
      ...testModules.map((module) => ({
        file: module.toTestSpecification(),
        result: fileResult(module, unhandledErrors),
      })),
      ...neverRan(vitest, testModules).map((file) => ({ file, result: fileThatNeverRan(options.root, file.moduleId) })),
    ];
    const failed = all.filter((each) => each.result.failures.length > 0);
    const passedAlone = options.isCI ? await tryAlone(vitest, failed, interruption) : [];
    const files = all.map((each) => each.result);
    const problems = [
      ...rejections.map((error) => `an error that nothing caught, in the main process: ${firstLine(error)}`),
      ...strayErrors(unhandledErrors, failed.filter(({ result }) => hasLostWorker(result)).length),
      ...(options.isCI ? skips(files.filter((file) => !passedAlone.includes(file))) : []),
      ...(takesCoverage(options) ? uncovered(coverage, options.root) : []),
    ];
    const passed = failed.length === passedAlone.length && problems.length === 0 && !interruption.aborted;
    const seconds = (performance.now() - began) / 1_000;
    return { result: { suite: options.suite, passed, seconds, files, passedAlone }, problems };
  } finally {
    // Vitest sets the exit code for tests that failed among the others. From here on it is for failed teardowns.
    process.exitCode = 0;
    await unlessStuck(vitest.close(), vitest, interruption).catch((error: unknown) => {
      if (!interruption.aborted) throw error;
    });
    process.off("unhandledRejection", note);
    // Vitest gives up on a worker that does not answer, but leaves it running.
    killWorkers();
  }
}

/**
 * After an interrupt, Vitest has its own teardown timeout to finish. It waits for ever for a worker that has ended while it
 * was being ended; what it leaves then is erased with the run.
 */
async function unlessStuck<T>(work: Promise<T>, { config }: Vitest, interruption: AbortSignal): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const stuck = new Promise<never>((_, reject) => {
    const begin = () => {
      timer = setTimeout(() => reject(new Error("Vitest did not end after the interrupt")), config.teardownTimeout);
    };
    if (interruption.aborted) begin();
    else interruption.addEventListener("abort", begin, { once: true });
  });
  try {
    return await Promise.race([work, stuck]);
  } finally {
    clearTimeout(timer);
  }
}

/** The files of this run whose worker did not come as far as to report them. */
function neverRan(vitest: Vitest, testModules: readonly TestModule[]): readonly TestSpecification[] {
  const known = new Set(testModules.map(({ moduleId }) => moduleId));
  const unknown = vitest.state.getPaths().filter((path) => !known.has(path));
  return unknown.flatMap((path) => vitest.getModuleSpecifications(path));
}

/** Only the whole fast suite covers the pure rooms fully, so a narrower run measures no coverage. */
function takesCoverage({ suite, only }: SuiteOptions): boolean {
  return suite === "fast" && only.length === 0;
}

interface Tried {
  readonly file: TestSpecification;
  readonly result: FileResult;
}

async function tryAlone(
  vitest: Vitest,
  failed: readonly Tried[],
  interruption: AbortSignal,
): Promise<readonly FileResult[]> {
  const passed: FileResult[] = [];
  const end = performance.now() + aloneMinutes * 60_000;
  for (const { file, result } of failed) {
    if (interruption.aborted) break;
    if (performance.now() > end) {
      process.stdout.write(`\nno time is left to run it alone: ${result.path}\n`);
      continue;
    }
    const times = result.isSecurity ? timesAlone.security : timesAlone.ordinary;
    process.stdout.write(`\nonce more, alone: ${result.path}${times > 1 ? ` (${times} times)` : ""}\n`);
    if (await passes(vitest, file, times)) passed.push(result);
  }
  return passed;
}

async function passes(vitest: Vitest, file: TestSpecification, times: number): Promise<boolean> {
  for (let time = 0; time < times; time++) {
    const { testModules, unhandledErrors } = await vitest.runTestSpecifications([file]);
    const again = testModules.find((module) => module.moduleId === file.moduleId);
    if (again === undefined || unhandledErrors.length > 0) return false;
    // An interrupted test has neither failed nor passed.
    const hasPassed = [...again.children.allTests()].every((test) => test.result().state === "passed");
    if (!hasPassed || fileResult(again, unhandledErrors).failures.length > 0) return false;
  }
  return true;
}

/** A failed `beforeAll` skips the tests of its file as well, so files that passed alone are not asked. */
function skips(files: readonly FileResult[]): readonly string[] {
  return files.some((file) => file.skipped > 0) ? ["tests were skipped, which CI does not allow"] : [];
}

/**
 * Errors that nothing caught and that belong to no file. Vitest reports the loss of a worker as one of them, without its
 * file; the file has failed already, and may have passed alone since.
 */
function strayErrors(errors: readonly unknown[], lostWorkers: number): readonly string[] {
  const stray = errors
    .filter((error) => (error as { readonly VITEST_TEST_PATH?: string }).VITEST_TEST_PATH === undefined)
    .map((error) => `an error that nothing caught: ${firstLine(error)}`);
  const isOfPool = (error: string) => error.includes("[vitest-pool]:");
  return [...stray.filter((error) => !isOfPool(error)), ...stray.filter(isOfPool).slice(lostWorkers)];
}
