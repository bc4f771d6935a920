import type { TestProject, Vitest } from "vitest/node";
import { endRun, eraseDeadRuns } from "./erase.ts";
import { onInterrupt } from "./interrupt.ts";
import { killAll } from "./read.ts";
import { currentRun, enterRun, newRun } from "./run.ts";
import { ownWorkers } from "./traces.ts";

/** Tells the tests which run is theirs. Where Vitest was started without `scripts/suite.mjs`, it is made and removed here. */
export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  // Node reads this file at every start, which triples its start-up time. Only image builds need it.
  if (project.vite.config.mode !== "e2e") delete process.env["NODE_EXTRA_CA_CERTS"];
  const given = currentRun();
  if (given !== null) {
    project.provide("run", given);
    return;
  }
  await eraseDeadRuns();
  const run = newRun();
  enterRun(run);
  project.provide("run", run);
  const held = onInterrupt((signal) => {
    cancel(project.vitest);
    void project.vitest.close().finally(() => {
      held[Symbol.dispose]();
      process.kill(process.pid, signal);
    });
  });
  return failingLoudly(async () => {
    await endRun(run);
    held[Symbol.dispose]();
  });
}

/** Vitest only prints an error of a teardown and leaves out the others: this one sets the exit code instead. */
export function failingLoudly(teardown: () => Promise<void>): () => Promise<void> {
  return async () => {
    try {
      await teardown();
    } catch (error) {
      process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
      process.exitCode = 1;
    }
  };
}

/** Ends the current tests. Kills the workers, because a running test would start more processes. */
export function cancel(vitest: Vitest): void {
  // It rejects if the global set-up fails, which `vitest.start` reports as well.
  vitest.cancelCurrentRun("keyboard-input").catch(() => {});
  killWorkers();
}

export function killWorkers(): void {
  killAll(ownWorkers());
}
