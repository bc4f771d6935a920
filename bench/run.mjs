// Ratios, measured side by side in one run: machines are noisy, so samples of both sides alternate.
import { importSource } from "../scripts/import-source.mjs";

const { runBench } = await importSource("bench/report.ts");
process.exitCode = await runBench(process.argv.slice(2));
