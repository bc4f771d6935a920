// Runs the tests: `node scripts/suite.mjs fast|e2e [--seed NUMBER] [FILE…]`. `make test` and `make test-e2e` call it.
import { importSource } from "./import-source.mjs";

const { main } = await importSource("test/suite/main.ts");
process.exitCode = await main(process.argv.slice(2), process.env);
