import { spawn, type spawnSync } from "node:child_process";
import { setTimeout } from "node:timers/promises";

/** One side of a comparison: does its work once. */
export type Subject = () => Promise<unknown>;

/** Median milliseconds of each subject; rounds go through all of them in turn, so that noise meets all alike. */
export async function measure<Name extends string>(
  subjects: Readonly<Record<Name, Subject>>,
  rounds: number,
  pauseMs = 0,
): Promise<Record<Name, number>> {
  const names = Object.keys(subjects) as Name[];
  const samples = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<Name, number[]>;
  for (let round = -3; round < rounds; round++) {
    for (const name of names) {
      // The kernel takes the last one's namespaces down at its leisure; that is not this one's time.
      if (pauseMs > 0) await setTimeout(pauseMs);
      const began = process.hrtime.bigint();
      await subjects[name]();
      // The first rounds warm caches and compilers.
      if (round >= 0) samples[name].push(Number(process.hrtime.bigint() - began) / 1e6);
    }
  }
  return Object.fromEntries(names.map((name) => [name, median(samples[name])])) as Record<Name, number>;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1] as number;
}

/** Runs a program to its end, without a word. */
export function program(
  file: string,
  words: readonly string[],
  options: Parameters<typeof spawnSync>[2] = {},
): Subject {
  return () =>
    new Promise<void>((resolve, reject) => {
      const child = spawn(file, words, { stdio: "ignore", ...options });
      child.once("error", reject);
      child.once("close", (code) =>
        code === 0 ? resolve() : reject(new Error(`${file} ${words[0]} ended with ${code}`)),
      );
    });
}

/** A line of the report: a figure, the bar that it must not pass, and whether it does. */
export interface Line {
  readonly what: string;
  readonly figure: string;
  readonly bar: string;
  readonly pass: boolean;
}

export function atMost(what: string, value: number, bar: number, unit = "×"): Line {
  return { what, figure: `${value.toFixed(2)} ${unit}`, bar: `≤ ${bar} ${unit}`, pass: value <= bar };
}

export function atLeast(what: string, value: number, bar: number, unit = "×"): Line {
  return { what, figure: `${value.toFixed(2)} ${unit}`, bar: `≥ ${bar} ${unit}`, pass: value >= bar };
}
