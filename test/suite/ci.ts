import { randomBytes } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { limitMinutes, minutesOf, overBudget } from "./budget.ts";
import { endWhenOutputCloses, onInterrupt } from "./interrupt.ts";
import { type Leftovers, leftovers, type MachineState, machineState } from "./leftovers.ts";
import { slowest } from "./report.ts";
import type { SuiteResult } from "./results.ts";
import { supervise } from "./supervise.ts";

const targets = ["check", "test", "test-e2e"];

/** Runs every check, stops at the first that fails, and prints where the time went and what was left behind. */
export async function runCI(root: string, secondsBefore: number): Promise<number> {
  endWhenOutputCloses();
  // `supervise` passes signals on; here they only must not end this process before it has looked for leftovers.
  using _held = onInterrupt(() => {});
  const results = join(root, ".make/results");
  rmSync(results, { recursive: true, force: true });
  // Every process that the checks start inherits the mark, unless a test replaces its environment.
  const mark = `PODBOT_CI_RUN=${randomBytes(6).toString("hex")}`;
  const before = machineState(mark);
  const times: { readonly target: string; readonly seconds: number }[] = [{ target: "setup", seconds: secondsBefore }];
  let failed: string | null = null;
  for (const target of targets) {
    const began = performance.now();
    const env = { ...process.env, ...Object.fromEntries([mark.split("=")]), CI: "true" };
    const limitMs = limitMinutes * 60_000 - 1_000 * times.reduce((sum, { seconds }) => sum + seconds, 0);
    const { status, cutShort } = await supervise(["make", target], { cwd: root, env, limitMs });
    times.push({ target, seconds: (performance.now() - began) / 1_000 });
    if (status === 0 && cutShort === null) continue;
    failed = `${target} ${cutShort === "interrupted" ? "was interrupted" : (cutShort ?? "failed")}`;
    break;
  }
  const { ours, others } = await lookForLeftovers(before, mark);
  const suites = ["fast", "e2e"].flatMap((name) => readResult(join(results, `${name}.json`)));
  const total = times.reduce((sum, { seconds }) => sum + seconds, 0);
  const passedAlone = suites.flatMap((suite) => suite.passedAlone.map(({ path }) => path));
  say([
    "",
    "where the time went:",
    ...times.map(({ target, seconds }) => `${seconds.toFixed(1).padStart(7)} s  ${target}`),
    "the slowest files:",
    ...slowest(suites, 10),
    ...others.map((line) => `new on this machine, and maybe of another program: ${line}`),
    ...ours.map((line) => `LEFT BEHIND: ${line}`),
    ...passedAlone.map((path) => `passed alone: ${path} (look into it: it failed among the others)`),
    ...overBudget(".ci/run", total),
  ]);
  if (failed === null && ours.length === 0) {
    const alone = passedAlone.length === 0 ? "" : `; passed alone: ${passedAlone.join(", ")}`;
    say([`ci: ${targets.join(", ")} passed in ${minutesOf(total)}${alone}`]);
    return 0;
  }
  say([failed === null ? "ci: the checks passed, but left something behind" : `ci: make ${failed}`]);
  return 1;
}

/** A process that was told to end may need a moment. */
async function lookForLeftovers(before: MachineState, mark: string): Promise<Leftovers> {
  for (let looks = 0; ; looks++) {
    const found = leftovers(before, machineState(mark));
    if (found.ours.length === 0 || looks === 10) return found;
    await sleep(500);
  }
}

function readResult(path: string): readonly SuiteResult[] {
  try {
    return [JSON.parse(readFileSync(path, "utf8")) as SuiteResult];
  } catch {
    return [];
  }
}

function say(lines: readonly string[]): void {
  process.stdout.write(`${lines.join("\n")}\n`);
}
