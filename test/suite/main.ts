import { join } from "node:path";
import { parseArgs } from "node:util";
import { endWhenOutputCloses } from "./interrupt.ts";
import { missingLines, needs } from "./needs.ts";
import { isSuiteName, suiteNames } from "./results.ts";
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
  if (!isSuiteName(suite)) throw new Error(`there is no suite ${suite}, only ${suiteNames.join(" and ")}`);
  endWhenOutputCloses();
  const root = process.cwd();
  for (const line of missingLines(needs(root, env))) process.stdout.write(`${line}\n`);
  return await runSuite({
    suite,
    only,
    isCI: Boolean(env["CI"]),
    seed: values.seed === undefined ? null : Number(values.seed),
    root,
    resultFile: values.result ?? join(root, `.make/results/${suite}.json`),
  });
}
