import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { hangUpWithOutput } from "./interrupt.ts";
import { missingLines, needs } from "./needs.ts";
import type { SuiteName } from "./results.ts";
import { runSuite } from "./suite.ts";

/** `suite.mjs fast|e2e [--seed NUMBER] [--result FILE] [FILE…]` */
export async function main(
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...words],
    options: { seed: { type: "string" }, result: { type: "string" } },
    allowPositionals: true,
  });
  const [suite = "fast", ...only] = positionals;
  hangUpWithOutput();
  const root = process.cwd();
  for (const line of missingLines(needs(root, env))) process.stdout.write(`${line}\n`);
  try {
    return await runSuite({
      suite: suite as SuiteName,
      only,
      isCI: Boolean(env["CI"]),
      seed: values.seed === undefined ? null : Number(values.seed),
      root,
      resultFile: values.result ?? join(root, `.make/results/${suite}.json`),
    });
  } finally {
    giveBack(root);
  }
}

/** The slow suite runs as root, also for a user who called sudo: what it built is that user's to remove. */
function giveBack(root: string): void {
  const { uid } = statSync(root);
  if (process.getuid?.() === 0 && uid !== 0) spawnSync("chown", ["-R", `${uid}`, join(root, ".make")]);
}
