// Ratios, measured side by side in one run: machines are noisy, so samples of both sides alternate.
import { importSource } from "../scripts/import-source.mjs";

const { runBench } = await importSource("bench/start.ts");
process.exitCode = await runBench();
