// Builds dist/: the command line with everything it needs, the library with its dependencies left outside,
// declarations, and the JSON Schema for editors. It is made aside and moved into place when all of it is there.
import { execFile } from "node:child_process";
import { chmod, copyFile, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { setFlagsFromString } from "node:v8";
import { Script } from "node:vm";
import { build, transform } from "esbuild";
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
  const { seccompArchitectures, seccompProgram } = await importSource("src/wall/seccomp.ts");
  const freedoms = [{ nesting: false }, { nesting: true }, { nesting: true, containers: true }];
  const variants = seccompArchitectures.flatMap((arch) => freedoms.map((freedom) => ({ arch, ...freedom })));
  const ready = variants.map((variant) => [
    `${variant.arch} ${variant.nesting} ${variant.containers === true}`,
    Buffer.from(seccompProgram(variant)).toString("base64"),
  ]);
  return `const ready = ${JSON.stringify(Object.fromEntries(ready))};
export const seccompArchitectures = ${JSON.stringify(seccompArchitectures)};
export const seccompProgram = ({ arch, nesting, containers = false }) =>
  Buffer.from(ready[[arch, nesting, containers].join(" ")], "base64");`;
}

/** Programs that are loaded together lie together, in this order: what a short run needs, what a session adds, … */
const packs = {
  core: ["src/cli/bin.ts", "src/cli/sandbox.ts"],
  doors: ["src/keeper/egress.ts", "src/wall/doors.ts"],
  session: [
    "src/cli/run.ts",
    "src/machine/descriptor-stream.ts",
    "src/machine/terminal.ts",
    "src/wall/bubblewrap/box.ts",
  ],
  host: ["src/cli/host.ts"],
  engine: ["src/keeper/engine-wall.ts"],
  gateway: ["src/gateway/gateway.ts"],
  upstream: ["src/upstream/upstream.ts", "src/upstream/tunnel.ts"],
  github: ["src/keeper/errand.ts", "src/keeper/tokens.ts", "src/keeper/clone.ts", "src/github/client.ts"],
  rest: [],
};

const parsers = ["yaml", "smol-toml", "jsonc-parser"];
/** What users of the library install themselves. All else is bundled: GitHub's client is 17 MB of packages, of which 28 kB run. */
const dependencies = Object.keys(JSON.parse(await readFile("package.json", "utf8")).dependencies);
const small = { minifySyntax: true, minifyWhitespace: true, legalComments: "none" };

/**
 * The command line as a few files of CommonJS, each with V8's compiled form beside it: Node starts these sooner than
 * modules. Parsers of configuration files are files of their own, since most runs need none and the largest is twice as
 * large as all the rest.
 */
async function buildCli() {
  const { outputFiles, metafile } = await build({
    ...common,
    entryPoints: { main: "src/cli/bin.ts" },
    chunkNames: "[name]-[hash]",
    define: { "import.meta.dirname": "__dirname" },
    external: parsers,
    write: false,
    metafile: true,
    plugins: [filtersReady],
  });
  const chunks = new Map(outputFiles.map(({ path, text }) => [basename(path), text]));
  await build({
    ...common,
    ...small,
    format: "cjs",
    splitting: false,
    entryPoints: Object.fromEntries(parsers.map((name) => [name, name])),
    outdir: `${made}/parsers`,
    outExtension: { ".js": ".cjs" },
  });
  const places = placesOf(metafile);
  await Promise.all(Object.keys(packs).map((pack) => writePack(pack, chunks, places)));
  await copyFile("scripts/podbot-stub.cjs", `${made}/podbot.cjs`);
  await chmod(`${made}/podbot.cjs`, 0o755);
}

const filtersReady = {
  name: "filters-ready",
  setup: ({ onLoad }) => onLoad({ filter: /wall\/seccomp\.ts$/ }, async () => ({ contents: await readyFilters() })),
};

/** Which pack each chunk is in: the first that needs it. */
function placesOf({ outputs }) {
  const entries = Object.entries(outputs).map(([path, { entryPoint }]) => [entryPoint, path]);
  const places = new Map();
  const put = (path, pack) => {
    if (places.has(basename(path))) return;
    places.set(basename(path), pack);
    const needed = outputs[path].imports.filter(({ kind, external }) => kind === "import-statement" && !external);
    for (const { path: next } of needed) put(next, pack);
  };
  for (const [pack, sources] of Object.entries(packs)) {
    for (const [source, path] of entries) if (pack === "rest" || sources.includes(source)) put(path, pack);
  }
  return places;
}

async function writePack(pack, chunks, places) {
  const names = [...chunks.keys()].filter((name) => places.get(name) === pack);
  const parts = await Promise.all(
    names.map(async (name) => {
      const { code } = await transform(chunks.get(name), {
        ...small,
        format: "cjs",
        platform: "node",
        target: "node20",
        supported: { "dynamic-import": false },
      });
      const placed = code
        .trimEnd()
        .replace(/require\("\.\/([^"]+)"\)/g, (_all, other) => `require("${places.get(other)}/${other}")`)
        .replace(new RegExp(`require\\("(${parsers.join("|")})"\\)`, "g"), 'require("./parsers/$1.cjs")');
      return `${JSON.stringify(name)}:function(exports,require,module,__dirname){${placed}\n}`;
    }),
  );
  const text = `({${parts.join(",\n")}})`;
  await writeFile(`${made}/${pack}.cjs`, text);
  await writeFile(`${made}/${pack}.cache`, compiled(pack, text));
}

/** V8's own form, with every function in it: one that has to be compiled at a start costs more than one too many. */
function compiled(pack, text) {
  setFlagsFromString("--no-lazy");
  const script = new Script(text, { filename: `podbot/${pack}.cjs` });
  // Otherwise V8 would find that it was made under other flags, and refuse it.
  setFlagsFromString("--lazy");
  return script.createCachedData();
}

async function buildLibrary() {
  await build({
    ...common,
    entryPoints: { index: "src/index.ts" },
    chunkNames: "chunks/lib-[name]-[hash]",
    external: dependencies,
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
