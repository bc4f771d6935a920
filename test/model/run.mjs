// The model provider as a program of its own: [HOST [PORT [PORT OF THE NAME SERVER]]]; 0 is a port that is free.
import { fileURLToPath } from "node:url";
import { importSource } from "../../scripts/import-source.mjs";

const { runModel } = await importSource(fileURLToPath(new URL("program.ts", import.meta.url)));
await runModel(process.argv.slice(2));
