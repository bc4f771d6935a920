// Builds dist/: the command line with everything it needs, the library with its dependencies left outside,
// declarations, and the JSON Schema for editors. It is made aside and moved into place when all of it is there.
import { execFile } from "node:child_process";
import { chmod, copyFile, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { build } from "esbuild";
import { importSource } from "./import-source.mjs";

process.chdir(fileURLToPath(new URL("..", import.meta.url)));

const made = `.make/dist-${process.pid}`;
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

/** The system call filters, assembled now: at a start, that would take longer than the plan. */
async function readyFilters() {
  const { seccompProgram } = await importSource("src/wall/bubblewrap/seccomp.ts");
  const variants = ["x64", "arm64"].flatMap((arch) => [false, true].map((nesting) => ({ arch, nesting })));
  const ready = variants.map((variant) => [
    `${variant.arch} ${variant.nesting}`,
    Buffer.from(seccompProgram(variant)).toString("base64"),
  ]);
  return `const ready = ${JSON.stringify(Object.fromEntries(ready))};
export const seccompProgram = ({ arch, nesting }) => Buffer.from(ready[arch + " " + nesting], "base64");`;
}

/**
 * One CommonJS file: Node starts it sooner than modules. Parsers of configuration files are files of their own, since
 * most runs need none and the largest is twice as large as all the rest.
 */
async function buildCli() {
  const parsers = ["yaml", "smol-toml", "jsonc-parser"];
  const commonjs = { ...common, format: "cjs", splitting: false, minifyWhitespace: true, legalComments: "none" };
  await build({
    ...commonjs,
    entryPoints: { main: "src/cli/bin.ts" },
    outExtension: { ".js": ".cjs" },
    define: { "import.meta.dirname": "__dirname" },
    supported: { "dynamic-import": false },
    plugins: [
      {
        name: "filters-ready",
        setup: ({ onLoad }) =>
          onLoad({ filter: /bubblewrap\/seccomp\.ts$/ }, async () => ({ contents: await readyFilters() })),
      },
      {
        name: "parsers-aside",
        setup: ({ onResolve }) =>
          onResolve({ filter: new RegExp(`^(${parsers.join("|")})$`) }, ({ path }) => ({
            path: `./parsers/${path}.cjs`,
            external: true,
          })),
      },
    ],
  });
  await build({
    ...commonjs,
    entryPoints: Object.fromEntries(parsers.map((name) => [name, name])),
    outdir: `${made}/parsers`,
    outExtension: { ".js": ".cjs" },
  });
  await copyFile("scripts/podbot-stub.cjs", `${made}/podbot.cjs`);
  await chmod(`${made}/podbot.cjs`, 0o755);
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
  await promisify(execFile)(process.execPath, ["scripts/compile-cache.cjs"]);
} catch (error) {
  // esbuild has already printed its own findings.
  if (!error.errors) process.stderr.write(`build: ${error.message}\n`);
  process.exitCode = 1;
} finally {
  await rm(made, { recursive: true, force: true });
}
