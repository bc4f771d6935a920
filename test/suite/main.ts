import { join } from "node:path";
import { parseArgs } from "node:util";
import { endWhenOutputCloses } from "./interrupt.ts";
import { missingLines, needs } from "./needs.ts";
import { suiteNames } from "./results.ts";
import { runSuite } from "./suite.ts";
import { existing, oneOf, told, wholeNumber } from "./wrong-use.ts";

/** `suite.mjs fast|e2e [--seed NUMBER] [--result FILE] [FILE…]` */
export function main(words: readonly string[], env: Readonly<Record<string, string | undefined>>): Promise<number> {
  return told(() => runWords(words, env));
}

async function runWords(words: readonly string[], env: Readonly<Record<string, string | undefined>>): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...words],
    options: { seed: { type: "string" }, result: { type: "string" } },
    allowPositionals: true,
  });
  const [name = "fast", ...files] = positionals;
  const suite = oneOf("the suite", suiteNames, name);
  endWhenOutputCloses();
  const root = process.cwd();
  const only = existing(root, files);
  const seed = values.seed === undefined ? null : wholeNumber("SEED", values.seed);
  for (const line of missingLines(needs(root, env))) process.stdout.write(`${line}\n`);
  return await runSuite({
    suite,
    only,
    isCI: Boolean(env["CI"]),
    seed,
    root,
    resultFile: values.result ?? join(root, `.make/results/${suite}.json`),
  });
}
