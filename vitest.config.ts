import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { patience } from "./test/faults/thorough.ts";

/** Files that only compute from data, so the tests can cover every branch. */
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
  "src/gateway/{address,address-bytes,authority,budget,client-hello,der,dns,foreign-keys,headers,lookups,masking,names,scrub,surrogate,target,truststore}.ts",
  "src/bridge/{acp,answer,codex,framer,inspector,message,paths,question,rules,scanner,shape,spellings,verdict}.ts",
  "src/github/{answer,askpass,failure,hosts,key-form,refresh,schedule,settings}.ts",
  "src/upstream/{exceptions,failure,proxies,upstream}.ts",
  "src/credentials/masked-{content,files}.ts",
  "src/wire/**",
  "src/registry/{record,reconcile,find}.ts",
  "src/journal/{event,output,reduce}.ts",
];
const reading = ["src/config/config-file.ts", "src/config/load.ts", "src/config/trust.ts", "src/config/parse*.ts"];

/** `vitest run` is the fast suite, `vitest run --mode e2e` the one with real engines and real packages. */
export default defineConfig(({ mode }) => ({
  test: {
    include: mode === "e2e" ? ["test/e2e/**/*.test.ts"] : ["test/**/*.test.ts"],
    exclude: mode === "e2e" ? [] : ["test/e2e/**"],
    globalSetup: ["test/suite/setup.ts", ...(mode === "e2e" ? ["test/e2e/engines/setup.ts"] : [])].map((path) =>
      fileURLToPath(new URL(path, import.meta.url)),
    ),
    setupFiles: [fileURLToPath(new URL("test/suite/worker-setup.ts", import.meta.url))],
    // A file that guards a security promise says so in its first line: `// @module-tag security`.
    tags: [{ name: "security", description: "guards a security promise: must pass three times alone after a failure" }],
    pool: "forks",
    // Tests spend more than half of their time waiting for processes, so three workers share a processor.
    maxWorkers: 3 * availableParallelism(),
    // A busy machine needs far less; a test that takes this long hangs.
    testTimeout: patience * (mode === "e2e" ? 300_000 : 120_000),
    hookTimeout: patience * (mode === "e2e" ? 300_000 : 120_000),
    expect: { poll: { timeout: patience * 60_000 } },
    teardownTimeout: mode === "e2e" ? 120_000 : 10_000,
    coverage: {
      provider: "v8",
      include: pure,
      exclude: reading,
      // test/suite/coverage.ts evaluates the coverage, so Vitest prints no report.
      reporter: [],
    },
  },
}));
