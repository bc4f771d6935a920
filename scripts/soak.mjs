// Repeats the tests under disturbances. `make soak` passes its variables as options.
import { importSource } from "./import-source.mjs";

const { soakMain } = await importSource("test/suite/soak/main.ts");
process.exitCode = await soakMain(process.argv.slice(2));
