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
      // The kernel removes the previous sandbox's namespaces in the background; the pause keeps that out of this
      // measurement.
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

/** Runs a program to its end, and discards its output. */
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

/** The limits of a figure. Missing the guard fails the bench; the goal is what we want to reach. */
export interface Bars {
  /** Set from measurements, with room for a noisy machine. */
  readonly guard: number;
  /** Default: the guard. */
  readonly goal?: number;
}

/** A line of the report. */
export interface Line {
  readonly what: string;
  readonly figure: string;
  /** The guard and the goal, in words. */
  readonly bars: string;
  readonly pass: boolean;
}

export function atMost(what: string, value: number, bars: Bars, unit = "×"): Line {
  return line(what, value, bars, unit, "≤", (bar) => value <= bar);
}

export function atLeast(what: string, value: number, bars: Bars, unit = "×"): Line {
  return line(what, value, bars, unit, "≥", (bar) => value >= bar);
}

export function forInformation(what: string, value: number, unit: string): Line {
  return { what, figure: `${value.toFixed(2)} ${unit}`, bars: "for information", pass: true };
}

function line(
  what: string,
  value: number,
  { guard, goal = guard }: Bars,
  unit: string,
  sign: string,
  holds: (bar: number) => boolean,
): Line {
  const wanted = goal === guard ? "" : `, goal ${sign} ${goal} ${unit}${holds(goal) ? "" : ": not yet"}`;
  return {
    what,
    figure: `${value.toFixed(2)} ${unit}`,
    bars: `guard ${sign} ${guard} ${unit}${wanted}`,
    pass: holds(guard),
  };
}
