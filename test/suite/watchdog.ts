import { join } from "node:path";
import type { Reporter, TestCase, TestModule, Vitest } from "vitest/node";
import { descendantsOf, describeProcess, listIfThere, parentOf, readIfThere, wordsOf } from "./read.ts";
import type { Run } from "./run.ts";
import { isWorker } from "./traces.ts";

/** How many times the timeout of a single test a whole file may take. The slowest file needs a third of one. */
const timeouts = 3;

/**
 * Kills a file that takes far too long, so that it fails alone and the others go on. Vitest's own timeouts do not do
 * that: they are timers in the worker, which never fire while a synchronous call blocks it, and each test has its own.
 */
export class Watchdog implements Reporter, Disposable {
  readonly #run: Run;
  readonly #running = new Map<string, RunningFile>();
  readonly #timer: NodeJS.Timeout;
  #limitMs = Number.POSITIVE_INFINITY;
  #hasKilled = false;

  constructor(run: Run) {
    this.#run = run;
    this.#timer = setInterval(() => this.#look(), 1_000);
  }

  /** Whether it has killed a file, which then could not clean up after itself. */
  get hasKilled(): boolean {
    return this.#hasKilled;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  onInit({ config }: Vitest): void {
    this.#limitMs = timeouts * Math.max(config.testTimeout, config.hookTimeout);
  }

  onTestModuleQueued({ moduleId, relativeModuleId: path }: TestModule): void {
    this.#running.set(moduleId, { path, due: performance.now() + this.#limitMs, at: "before its first test" });
  }

  onTestCaseReady({ module: { moduleId }, fullName }: TestCase): void {
    const known = this.#running.get(moduleId);
    if (known !== undefined) this.#running.set(moduleId, { ...known, at: `in "${fullName}"` });
  }

  onTestModuleEnd({ moduleId }: TestModule): void {
    this.#running.delete(moduleId);
  }

  #look(): void {
    for (const [moduleId, { path, due, at }] of this.#running) {
      if (performance.now() < due) continue;
      this.#running.delete(moduleId);
      this.#hasKilled = true;
      const tree = workersOf(this.#run, moduleId).flatMap((worker) => [worker, ...descendantsOf(worker)]);
      const lines = [`killed after ${this.#limitMs / 1_000} s: ${path}, ${at}`, ...tree.map(describeProcess)];
      process.stdout.write(`\n${lines.join("\n")}\n`);
      for (const pid of tree) kill(pid);
    }
  }
}

interface RunningFile {
  readonly path: string;
  /** When its time is up, in milliseconds of `performance.now()`. */
  readonly due: number;
  /** How far it came, as far as its worker could say. */
  readonly at: string;
}

/** The workers of this process that run a file now. */
function workersOf({ workers }: Run, moduleId: string): readonly number[] {
  return listIfThere(workers)
    .filter((name) => readIfThere(join(workers, name)) === moduleId)
    .map(Number)
    .filter((pid) => parentOf(pid) === process.pid && isWorker(wordsOf(pid)));
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended meanwhile.
  }
}
