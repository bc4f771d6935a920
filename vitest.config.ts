import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import type { Reporter, TestModule } from "vitest/node";

/** What is computed from data alone, and can therefore be tested to the last branch. */
const pure = [
  "src/errors.ts",
  "src/config/**",
  "src/policy/**",
  "src/plan/**",
  "src/wall/**/render*.ts",
  "src/wall/engine/{script,gaps,parts,seccomp-profile}.ts",
  "src/engine/{endpoint,candidates}.ts",
  "src/wall/seccomp.ts",
  "src/agents/**",
  "src/image/{recipe,software,certificates,debian,proxies,steps,failure,show}.ts",
  "src/gateway/{address,address-bytes,authority,client-hello,der,dns,headers,lookups,masking,names,scrub,surrogate,target,truststore}.ts",
  "src/bridge/{acp,answer,codex,framer,inspector,message,paths,question,rules,scanner,shape,spellings,verdict}.ts",
  "src/github/{answer,askpass,failure,hosts,key-form,refresh,schedule,settings}.ts",
  "src/upstream/{exceptions,failure,proxies,upstream}.ts",
  "src/credentials/masked-{content,files}.ts",
  "src/wire/**",
  "src/registry/{record,reconcile,find}.ts",
  "src/journal/{event,output,reduce}.ts",
];
const reading = ["src/config/config-file.ts", "src/config/load.ts", "src/config/trust.ts", "src/config/parse*.ts"];

/**
 * In CI, a wait that ran out is given one more try, and named: the machine is shared with all that the other tests
 * start. A wrong answer is never asked twice.
 */
const secondTry = { count: 1, condition: /waited in vain|timed out in \d+ms/ };

/** In CI: one plain line at the end; and since a capability may be missing on a laptop but not there, no skips. */
const closingLine: Reporter = {
  onTestRunEnd(modules: readonly TestModule[], errors) {
    const count = { passed: 0, failed: errors.length, skipped: 0, pending: 0 };
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        count[test.result().state] += 1;
        if (test.diagnostic()?.flaky) process.stdout.write(`only at the second try: ${test.fullName}\n`);
      }
      count.failed += module.errors().length;
    }
    process.stdout.write(`tests: ${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped\n`);
    if (count.skipped > 0) process.exitCode = 1;
  },
};

/** `vitest run` is the fast suite, `vitest run --mode e2e` the one with real engines and real packages. */
export default defineConfig(({ mode }) => ({
  test: {
    include: mode === "e2e" ? ["test/e2e/**/*.test.ts"] : ["test/**/*.test.ts"],
    exclude: mode === "e2e" ? [] : ["test/e2e/**"],
    globalSetup: mode === "e2e" ? [fileURLToPath(new URL("./test/e2e/engines/setup.ts", import.meta.url))] : [],
    pool: "forks",
    // All of them: most of the time is spent waiting for processes, and not by the processor.
    maxWorkers: availableParallelism(),
    testTimeout: mode === "e2e" ? 300_000 : 30_000,
    hookTimeout: mode === "e2e" ? 300_000 : 30_000,
    retry: process.env["CI"] ? secondTry : 0,
    expect: { poll: { timeout: 15_000 } },
    teardownTimeout: mode === "e2e" ? 120_000 : 10_000,
    reporters: process.env["CI"] ? ["default", closingLine] : ["default"],
    coverage: {
      provider: "v8",
      include: pure,
      exclude: reading,
      reporter: [["text", { skipFull: true }]],
      thresholds: Object.fromEntries(pure.map((glob) => [glob, { 100: true }])),
    },
  },
}));
