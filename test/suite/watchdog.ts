import { join, relative } from "node:path";
import type { Reporter, TestCase, Vitest } from "vitest/node";
import { descendantsOf, describeProcess, identify, killAll, readIfThere } from "./read.ts";
import type { Run } from "./run.ts";
import { ownWorkers } from "./traces.ts";

/** A file may take this many times the timeout of a single test. The slowest file needs a third of one timeout. */
const timeouts = 3;

/**
 * Kills the worker of a file that hangs, so that this file alone fails and the others go on. Vitest's own timeouts are
 * timers in the worker: they never fire while a synchronous call blocks it, and each covers a single test.
 */
export class Watchdog implements Reporter, Disposable {
  readonly #run: Run;
  /** By pid and start time. Each file has a worker of its own. */
  readonly #due = new Map<string, number>();
  /** The test that a file has started last. */
  readonly #lastTest = new Map<string, string>();
  readonly #timer: NodeJS.Timeout;
  #limitMs = Number.POSITIVE_INFINITY;
  #hasKilled = false;

  constructor(run: Run) {
    this.#run = run;
    this.#timer = setInterval(() => this.#look(), 5_000);
  }

  /** Whether it has killed a worker, whose tests then could not clean up. */
  get hasKilled(): boolean {
    return this.#hasKilled;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  onInit({ config }: Vitest): void {
    this.#limitMs = timeouts * Math.max(config.testTimeout, config.hookTimeout);
  }

  onTestCaseReady({ module: { moduleId }, fullName }: TestCase): void {
    this.#lastTest.set(moduleId, fullName);
  }

  #look(): void {
    const now = performance.now();
    for (const pid of ownWorkers()) {
      const worker = identify(pid);
      if (worker === null) continue;
      const due = this.#due.get(worker) ?? now + this.#limitMs;
      this.#due.set(worker, due);
      if (now >= due) this.#kill(pid);
    }
  }

  #kill(worker: number): void {
    this.#hasKilled = true;
    const moduleId = readIfThere(join(this.#run.workers, `${worker}`));
    const test = this.#lastTest.get(moduleId);
    const tree = [worker, ...descendantsOf(worker)];
    const place = test === undefined ? "before its first test" : `in "${test}"`;
    const lines = [
      `killed after ${this.#limitMs / 1_000} s: ${relative(process.cwd(), moduleId)}, ${place}`,
      ...tree.map(describeProcess),
    ];
    process.stdout.write(`\n${lines.join("\n")}\n`);
    killAll(tree);
  }
}
