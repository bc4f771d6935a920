import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { expect, test } from "vitest";

test("a run without configuration loads no parser, no trust records and no package", async () => {
  const entry = fileURLToPath(new URL("../../src/config/load.ts", import.meta.url));
  const { metafile } = await build({
    entryPoints: [entry],
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    outdir: "out",
    write: false,
    metafile: true,
    logLevel: "silent",
  });
  const loaded = new Set<string>();
  const follow = (output: string) => {
    const { inputs = {}, imports = [] } = metafile.outputs[output] ?? {};
    for (const input of Object.keys(inputs)) loaded.add(input);
    for (const { path, kind } of imports) if (kind === "import-statement") follow(path);
  };
  const [main] =
    Object.entries(metafile.outputs).find(([, output]) => output.entryPoint?.endsWith("config/load.ts")) ?? [];
  follow(main as string);
  expect([...loaded].some((input) => input.endsWith("src/config/load.ts"))).toBe(true);
  expect([...loaded].filter((input) => /node_modules|\/(?:parse|trust|json-schema)[^/]*$/.test(input))).toEqual([]);
});
