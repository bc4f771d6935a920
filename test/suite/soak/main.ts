import { parseArgs } from "node:util";
import { endWhenOutputCloses } from "../interrupt.ts";
import type { SuiteName } from "../results.ts";
import { soak } from "./soak.ts";

const suites: Readonly<Record<string, readonly SuiteName[]>> = {
  fast: ["fast"],
  e2e: ["e2e"],
  all: ["fast", "e2e"],
};

/** `soak.mjs [--suite fast|e2e|all] [--seed NUMBER] [--minutes NUMBER] [--with NAME,…] [FILE…]` */
export async function soakMain(words: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...words],
    options: {
      suite: { type: "string", default: "fast" },
      seed: { type: "string", default: "" },
      minutes: { type: "string", default: "" },
      with: { type: "string", default: "" },
    },
    allowPositionals: true,
  });
  const chosen = suites[values.suite];
  if (chosen === undefined) throw new Error(`SUITE is ${Object.keys(suites).join(", ")}, not ${values.suite}`);
  if (chosen.includes("e2e") && process.getuid?.() !== 0)
    throw new Error("the slow suite needs root: sudo make soak SUITE=e2e");
  endWhenOutputCloses();
  const hasSeed = values.seed !== "";
  return await soak({
    root: process.cwd(),
    suites: chosen,
    only: positionals,
    seed: hasSeed ? Number(values.seed) : Date.now() % 1_000_000,
    // A seed repeats one round.
    minutes: values.minutes === "" ? (hasSeed ? 0 : 10) : Number(values.minutes),
    wanted: values.with === "" ? null : values.with.split(","),
  });
}
