// What `.ci/run` runs once everything is installed and built: `node scripts/ci.mjs SECONDS-UNTIL-NOW`.
import { importSource } from "./import-source.mjs";

const { runCI } = await importSource("test/suite/ci.ts");
process.exitCode = await runCI(process.cwd(), Number(process.argv[2] ?? 0));
