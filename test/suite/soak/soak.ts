import { readFileSync } from "node:fs";
import { join } from "node:path";
import { chance } from "../../faults/chance.ts";
import { limitMinutes, minutesOf } from "../budget.ts";
import { erase, eraseDeadRuns } from "../erase.ts";
import { onInterrupt } from "../interrupt.ts";
import type { SuiteName, SuiteResult } from "../results.ts";
import { newRun, type Run } from "../run.ts";
import { type Supervised, supervise } from "../supervise.ts";
import { WrongUse } from "../wrong-use.ts";
import { clock } from "./clock.ts";
import { disk } from "./disk.ts";
import type { Disturbance, Kind } from "./disturbance.ts";
import { load } from "./load.ts";
import { stall } from "./stall.ts";

const kinds: readonly Kind[] = [stall, load, disk, clock];

export interface SoakOptions {
  readonly root: string;
  readonly suites: readonly SuiteName[];
  /** Files or folders; none is all of them. */
  readonly only: readonly string[];
  /** The first round's; each further round has the next. */
  readonly seed: number;
  /** No round begins after that. */
  readonly minutes: number;
  /** Names of disturbances; null leaves it to the seed. */
  readonly wanted: readonly string[] | null;
}

interface Round {
  readonly failures: readonly string[];
  /** The command that repeats it. */
  readonly again: string;
}

/** Repeats the suites, each round under the disturbances its seed chooses. Returns 1 if any test failed. */
export async function soak(options: SoakOptions): Promise<number> {
  const began = performance.now();
  const available = availableKinds(options.wanted);
  await eraseDeadRuns();
  // `supervise` passes signals on. Between two rounds a signal reaches only this process.
  let isInterrupted = false;
  using _held = onInterrupt(() => {
    isInterrupted = true;
  });
  const rounds: Round[] = [];
  const seconds = () => (performance.now() - began) / 1_000;
  for (let at = 0; at === 0 || seconds() < options.minutes * 60; at++) {
    for (const suite of options.suites) {
      rounds.push(await soakOnce(options, suite, options.seed + at, available));
      if (isInterrupted) {
        report(rounds, seconds());
        return 1;
      }
    }
  }
  return report(rounds, seconds());
}

/** Returns 1 if any test failed. */
function report(rounds: readonly Round[], seconds: number): number {
  const bad = rounds.filter(({ failures }) => failures.length > 0);
  const count = bad.reduce((sum, { failures }) => sum + failures.length, 0);
  say([
    ...bad.flatMap(({ failures, again }) => [...failures.map((what) => `failed: ${what}`), `  again: ${again}`]),
    `soak: ${rounds.length} rounds in ${minutesOf(seconds)}, ${count} failures`,
  ]);
  return count > 0 ? 1 : 0;
}

function availableKinds(wanted: readonly string[] | null): readonly Kind[] {
  const unknown = wanted?.find((name) => !kinds.some((kind) => kind.name === name));
  if (unknown !== undefined)
    throw new WrongUse(`there is no ${unknown}, only ${kinds.map(({ name }) => name).join(", ")}`);
  return kinds
    .filter(({ name }) => wanted?.includes(name) ?? true)
    .filter((kind) => {
      const obstacle = kind.obstacle();
      if (obstacle === null) return true;
      if (wanted !== null) throw new WrongUse(`${kind.name} is not possible here: ${obstacle}`);
      say([`soak: without ${kind.name}: ${obstacle}`]);
      return false;
    });
}

async function soakOnce(
  { root, only, wanted }: SoakOptions,
  suite: SuiteName,
  seed: number,
  available: readonly Kind[],
): Promise<Round> {
  const chosen = wanted === null ? choice(available, chance(seed)) : available;
  const names = chosen.map(({ name }) => name).join(",");
  const files = only.length > 0 ? ` FILES="${only.join(" ")}"` : "";
  const again = `make soak SUITE=${suite} SEED=${seed} WITH=${names}${files}`;
  say([`soak: ${again}`]);
  const run = newRun();
  const resultFile = join(run.directory, "result.json");
  let failures: readonly string[] = [];
  try {
    const { supervised, problems } = await disturbed(chosen, seed, run, ({ prefix, env }, onSignal) => {
      const told = ["--seed", `${seed}`, "--result", resultFile];
      const mounts = suite === "e2e" ? ["scripts/private-mounts.sh"] : [];
      const words = [...prefix, ...mounts, process.execPath, "scripts/suite.mjs", suite, ...told, ...only];
      const own = { SOAK: "1", FAULTS_SEED: `${seed}` };
      const limitMs = limitMinutes * 60_000;
      return supervise(words, { cwd: root, env: { ...process.env, ...own, ...env }, onSignal, limitMs });
    });
    if (supervised.cutShort !== "interrupted")
      failures = [...judge(suite, supervised, readFailures(resultFile)), ...problems];
  } finally {
    const left = await erase(run);
    if (failures.length === 0) failures = left.map((what) => `left behind: ${what}`);
  }
  return { failures, again };
}

/** A suite that says nothing of the tests may have failed as a whole. */
function judge(suite: SuiteName, { status, cutShort }: Supervised, failures: readonly string[]): readonly string[] {
  if (cutShort !== null) return [`the ${suite} suite ${cutShort}`, ...failures];
  return status !== 0 && failures.length === 0 ? [`the ${suite} suite ended with ${status}`] : failures;
}

interface Disturbed {
  readonly supervised: Supervised;
  /** What the disturbances report at their end. */
  readonly problems: readonly string[];
}

/** Runs something while the disturbances last. */
async function disturbed(
  chosen: readonly Kind[],
  seed: number,
  run: Run,
  work: (all: Pick<Disturbance, "prefix" | "env">, onSignal: () => void) => Promise<Supervised>,
): Promise<Disturbed> {
  const started: Disturbance[] = [];
  let ending: Promise<readonly PromiseSettledResult<void>[]> | null = null;
  /** Ends all of them at once, so that one that fails does not keep the others. */
  const end = () => {
    ending ??= Promise.allSettled(started.map((each) => each[Symbol.asyncDispose]()));
    return ending;
  };
  try {
    // Each has choices of its own, so that a round is the same whether the seed or `WITH` chose its disturbances.
    for (const kind of chosen)
      started.push(await kind.start({ chance: chance(seed + 1_000_003 * (1 + kinds.indexOf(kind))), run }));
    const prefix = started.flatMap((each) => each.prefix);
    const env = Object.assign({}, ...started.map((each) => each.env)) as Record<string, string>;
    // The tests clean up when they are told to end, for which they must not be frozen.
    const supervised = await work({ prefix, env }, () => void end());
    const problems = (await end()).flatMap((outcome) => (outcome.status === "rejected" ? [`${outcome.reason}`] : []));
    return { supervised, problems };
  } finally {
    await end();
  }
}

/** Chooses at least one disturbance. */
function choice(available: readonly Kind[], choose: (limit: number) => number): readonly Kind[] {
  const left = [...available];
  const count = Math.min(left.length, 1 + choose(left.length));
  return Array.from({ length: count }, () => left.splice(choose(left.length), 1)[0] as Kind);
}

function readFailures(path: string): readonly string[] {
  try {
    const { files } = JSON.parse(readFileSync(path, "utf8")) as SuiteResult;
    return files.flatMap((file) => file.failures.map(({ test, message }) => `${file.path}: ${test}: ${message}`));
  } catch {
    return [];
  }
}

function say(lines: readonly string[]): void {
  process.stdout.write(`${lines.join("\n")}\n`);
}
