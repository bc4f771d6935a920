// Ratios, measured side by side in one run: machines are noisy, so samples of both sides alternate.
import { mkdtempSync, rmSync } from "node:fs";
import { importSource } from "../scripts/import-source.mjs";

// The programs beside which Podbot is measured leave files in the temporary directory.
process.env.TMPDIR = mkdtempSync("/var/tmp/podbot-bench-");
process.on("exit", () => rmSync(process.env.TMPDIR, { recursive: true, force: true }));

const { runBench } = await importSource("bench/report.ts");
process.exitCode = await runBench(process.argv.slice(2));
