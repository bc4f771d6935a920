import { defineConfig } from "vitest/config";
import type { Reporter, TestModule } from "vitest/node";

/** What is computed from data alone, and can therefore be tested to the last branch. */
const pure = [
  "src/errors.ts",
  "src/config/**",
  "src/policy/**",
  "src/plan/**",
  "src/wall/**/render*.ts",
  "src/wall/bubblewrap/seccomp.ts",
];
const reading = ["src/config/config-file.ts", "src/config/load.ts", "src/config/trust.ts", "src/config/parse*.ts"];

/** In CI: one plain line at the end; and since a capability may be missing on a laptop but not there, no skips. */
const closingLine: Reporter = {
  onTestRunEnd(modules: readonly TestModule[], errors) {
    const count = { passed: 0, failed: errors.length, skipped: 0, pending: 0 };
    for (const module of modules) {
      for (const test of module.children.allTests()) count[test.result().state] += 1;
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
    pool: "forks",
    testTimeout: mode === "e2e" ? 300_000 : 30_000,
    hookTimeout: mode === "e2e" ? 300_000 : 30_000,
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
