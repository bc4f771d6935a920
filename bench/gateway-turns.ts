import type { Via } from "./gateway-load.ts";
import { median } from "./measure.ts";

/** Median of each side; rounds go through all of them in turn, so that noise meets all alike. */
export async function inTurn<Name extends string>(
  sides: Readonly<Record<Name, Via>>,
  rounds: number,
  figure: (via: Via) => Promise<number>,
): Promise<Record<Name, number>> {
  const names = Object.keys(sides) as Name[];
  const samples = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<Name, number[]>;
  for (let round = -1; round < rounds; round++) {
    // The order alternates, so that no side gains from its position.
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const taken = await figure(sides[name]);
      if (round >= 0) samples[name].push(taken);
    }
  }
  return Object.fromEntries(names.map((name) => [name, median(samples[name])])) as Record<Name, number>;
}

export function mebibytesPerSecond(bytes: number, [milliseconds]: readonly number[]): number {
  return bytes / 1024 / 1024 / ((milliseconds as number) / 1_000);
}
