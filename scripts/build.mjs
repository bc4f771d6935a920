// Builds dist/: the command line with everything it needs, the library with its dependencies left outside,
// declarations, and the JSON Schema for editors. It is made aside and moved into place when all of it is there.
import { execFile } from "node:child_process";
import { chmod, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { build } from "esbuild";
import { importSource } from "./import-source.mjs";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));

const made = `.make/dist-${process.pid}`;
const shebang = "#!/usr/bin/env node\n";
const common = {
  bundle: true,
  outdir: made,
  platform: "node",
  format: "esm",
  target: "node20",
  splitting: true,
  minifySyntax: true,
  mainFields: ["module", "main"],
  logLevel: "error",
};

async function buildCli() {
  await build({
    ...common,
    entryPoints: { podbot: "src/cli/bin.ts" },
    chunkNames: "chunks/[name]-[hash]",
    // The package's Node entry is CommonJS, which cannot be split or shaken; this one is the same code as modules.
    alias: { yaml: fileURLToPath(new URL("../node_modules/yaml/browser/dist/index.js", import.meta.url)) },
  });
  const text = await readFile(`${made}/podbot.js`, "utf8");
  if (!text.startsWith("#!")) await writeFile(`${made}/podbot.js`, shebang + text);
  await chmod(`${made}/podbot.js`, 0o755);
}

async function buildLibrary() {
  await build({
    ...common,
    entryPoints: { index: "src/index.ts" },
    chunkNames: "chunks/lib-[name]-[hash]",
    packages: "external",
  });
}

async function buildDeclarations() {
  const args = ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json", "--outDir", `${made}/types`];
  try {
    await promisify(execFile)(process.execPath, args);
  } catch (error) {
    throw new Error(`declarations: ${error.stdout || error.message}`);
  }
}

async function writeSchema() {
  const { configJsonSchema } = await importSource("src/config/json-schema.ts");
  const schema = typeof configJsonSchema === "function" ? configJsonSchema() : configJsonSchema;
  if (typeof schema !== "object") throw new Error("src/config/json-schema.ts exports no configJsonSchema");
  await writeFile(`${made}/config.schema.json`, `${JSON.stringify(schema, null, 2)}\n`);
}

try {
  await mkdir(made, { recursive: true });
  await Promise.all([buildCli(), buildLibrary(), buildDeclarations(), writeSchema()]);
  await rm("dist", { recursive: true, force: true });
  await rename(made, "dist");
} catch (error) {
  // esbuild has already printed its own findings.
  if (!error.errors) process.stderr.write(`build: ${error.message}\n`);
  process.exitCode = 1;
} finally {
  await rm(made, { recursive: true, force: true });
}
