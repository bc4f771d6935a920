import { mkdir, rm, writeFile } from "node:fs/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
const directory = `${root}.make`;
let count = 0;

/** Imports a TypeScript module of this project: Node 20 cannot, so it is bundled first. */
export async function importSource(path) {
  const { outputFiles } = await build({
    entryPoints: [path],
    absWorkingDir: root,
    bundle: true,
    write: false,
    platform: "node",
    format: "esm",
    target: "node20",
    packages: "external",
    logLevel: "error",
  });
  const file = `${directory}/source-${process.pid}-${count++}.mjs`;
  await mkdir(directory, { recursive: true });
  await writeFile(file, outputFiles[0].contents);
  try {
    return await import(pathToFileURL(file).href);
  } finally {
    await rm(file);
  }
}
