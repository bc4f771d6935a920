import { parseArgs } from "node:util";
import { endWhenOutputCloses } from "../interrupt.ts";
import type { SuiteName } from "../results.ts";
import { existing, oneOf, told, WrongUse, wholeNumber } from "../wrong-use.ts";
import { soak } from "./soak.ts";

const suites: Readonly<Record<SuiteName | "all", readonly SuiteName[]>> = {
  fast: ["fast"],
  e2e: ["e2e"],
  all: ["fast", "e2e"],
};

/** `soak.mjs [--suite fast|e2e|all] [--seed NUMBER] [--minutes NUMBER] [--with NAME,…] [FILE…]` */
export function soakMain(words: readonly string[]): Promise<number> {
  return told(() => runWords(words));
}

async function runWords(words: readonly string[]): Promise<number> {
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
  const chosen = suites[oneOf("SUITE", ["fast", "e2e", "all"], values.suite)];
  if (chosen.includes("e2e") && process.getuid?.() !== 0)
    throw new WrongUse("the slow suite needs root: sudo make soak SUITE=e2e");
  endWhenOutputCloses();
  const hasSeed = values.seed !== "";
  return await soak({
    root: process.cwd(),
    suites: chosen,
    only: existing(process.cwd(), positionals),
    seed: hasSeed ? wholeNumber("SEED", values.seed) : Date.now() % 1_000_000,
    // A seed repeats one round.
    minutes: values.minutes === "" ? (hasSeed ? 0 : 10) : wholeNumber("MINUTES", values.minutes),
    wanted: values.with === "" ? null : values.with.split(","),
  });
}
