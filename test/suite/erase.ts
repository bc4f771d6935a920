import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { patience } from "../faults/thorough.ts";
import { listIfThere } from "./read.ts";
import { deadRuns, otherRuns, ownerName, type Run } from "./run.ts";
import { removeNoted } from "./shared-directories.ts";
import { endProcesses, processesOf, removeTraces } from "./traces.ts";

/** How long a process that was told to end may take, on a busy machine, before it counts as left behind. */
const graceMs = patience * 30_000;

/** Removes a run whose tests are over. A process that is still running then is an error. */
export async function endRun(run: Run): Promise<void> {
  const left = await erase(run, graceMs);
  if (left.length > 0) throw new Error(`the tests left behind:\n${left.join("\n")}`);
}

/** Removes the runs of this user that were killed. A run that cannot be removed does not keep the next from starting. */
export async function eraseDeadRuns(): Promise<void> {
  const seen = new Set<string>();
  // Killing the processes of one run can end another: a soak's suite has a run of its own.
  for (;;) {
    const runs = deadRuns().filter(({ id }) => !seen.has(id));
    if (runs.length === 0) return;
    for (const run of runs) {
      seen.add(run.id);
      process.stdout.write(`removing what a killed run of the tests left: ${run.directory}\n`);
      await erase(run).catch((error: Error) => process.stderr.write(`${error.message}\n`));
    }
  }
}

/**
 * Removes everything that a run created. Returns the processes that were still running after the grace period; a clean
 * run has none.
 */
export async function erase(run: Run, graceMs = 0): Promise<readonly string[]> {
  const left = await endProcesses(run, graceMs);
  const stays = [...removeTraces(run), ...processesOf(run).map(({ pid, words }) => `process ${pid}: ${words}`)];
  if (stays.length > 0) throw new Error(`this run of the tests cannot be removed:\n${stays.join("\n")}`);
  removeNoted(
    run.directory,
    otherRuns(run).map((other) => other.directory),
  );
  // The owner goes last: if removal fails half-way, the next run still finds this directory.
  for (const name of listIfThere(run.directory)) if (name !== ownerName) removeTree(join(run.directory, name));
  removeTree(run.directory);
  return left;
}

/** Tests make directories that even their owner may not enter. */
function removeTree(path: string): void {
  const remove = () => rmSync(path, { recursive: true, force: true, maxRetries: 5 });
  try {
    remove();
  } catch {
    spawnSync("chmod", ["-R", "u+rwx", path]);
    remove();
  }
}
