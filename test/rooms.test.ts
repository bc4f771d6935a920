import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, describe, expect, test } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Which rooms a room may import. The contracts beside them are open to all; `index.ts`, above them all, to none. */
const table: Readonly<Record<string, readonly string[]>> = {
  machine: [],
  wire: [],
  agents: [],
  config: [],
  policy: [],
  survey: ["machine", "policy"],
  plan: ["machine", "policy", "survey"],
  engine: ["machine"],
  credentials: ["machine"],
  upstream: [],
  gateway: ["policy", "upstream"],
  bridge: [],
  github: ["machine", "upstream"],
  image: ["credentials", "engine", "machine", "upstream"],
  wall: ["engine", "machine", "plan", "wire"],
  sandbox: ["machine", "wall", "wire"],
  journal: ["machine", "wire"],
  registry: ["machine", "wire"],
  keeper: [
    ...[
      "agents",
      "bridge",
      "config",
      "credentials",
      "engine",
      "gateway",
      "github",
      "image",
      "journal",
      "machine",
      "plan",
      "policy",
      "registry",
    ],
    ...["sandbox", "survey", "upstream", "wall", "wire"],
  ],
  cli: [
    ...[
      "agents",
      "bridge",
      "config",
      "credentials",
      "engine",
      "gateway",
      "github",
      "image",
      "index",
      "journal",
      "keeper",
      "machine",
      "plan",
      "policy",
      "registry",
      "sandbox",
    ],
    ...["survey", "upstream", "wall", "wire"],
  ],
};
const rooms = Object.keys(table);
const contracts = ["decision", "errors", "token-source"];

const project = await mkdtemp(join(tmpdir(), "podbot-rooms-"));
afterAll(() => rm(project, { recursive: true }));
for (const file of ["biome.json", ".gitignore", "scripts/types-only.grit"]) {
  await cp(join(root, file), join(project, file));
}

/** Lints the files, given by path and lines, under the project's own rules; returns `path:line rule`. */
async function lint(files: Readonly<Record<string, readonly string[]>>): Promise<string[]> {
  await rm(join(project, "src"), { recursive: true, force: true });
  for (const [path, lines] of Object.entries(files)) {
    await mkdir(dirname(join(project, path)), { recursive: true });
    await writeFile(join(project, path), `${lines.join("\n")}\n`);
  }
  const biome = join(root, "node_modules/.bin/biome");
  const args = ["lint", "--reporter=json", "--max-diagnostics=none", "src"];
  const { stdout } = await promisify(execFile)(biome, args, { cwd: project }).catch((error) => error);
  const { diagnostics } = JSON.parse(stdout) as {
    diagnostics: { category: string; location: { path: string; start: { line: number } } }[];
  };
  return diagnostics.map(({ category, location }) => {
    return `${location.path}:${location.start.line} ${category.split("/").at(-1)}`;
  });
}

describe("the room table", () => {
  test("names every room that exists", async () => {
    const paths = await readdir(join(root, "src"), { recursive: true });
    const modules = paths.filter((path) => path.includes("/") && path.endsWith(".ts"));
    expect(rooms).toEqual(expect.arrayContaining([...new Set(modules.map((path) => path.split("/")[0]))]));
  });

  test.each(["x.ts", "deeper/x.ts"])("is held by the linter, for src/<room>/%s", async (name) => {
    const up = "../".repeat(name.split("/").length);
    const files: Record<string, string[]> = {};
    const forbidden: string[] = [];
    for (const room of rooms) {
      const path = `src/${room}/${name}`;
      const others = [...rooms.filter((other) => other !== room), ...contracts, "index"];
      files[path] = others.map((other) => {
        return `export type * from "${up}${rooms.includes(other) ? `${other}/target.ts` : `${other}.ts`}";`;
      });
      for (const [index, other] of others.entries()) {
        const allowed = contracts.includes(other) || table[room]?.includes(other);
        if (!allowed) forbidden.push(`${path}:${index + 1} noRestrictedImports`);
      }
    }
    expect((await lint(files)).sort()).toEqual(forbidden.sort());
  });

  test("keeps the contracts alone and the command line out of the library", async () => {
    const found = await lint({
      "src/decision.ts": ['export * from "./errors.ts";'],
      "src/errors.ts": ['export * from "./policy/x.ts";', 'export * from "node:path";'],
      "src/token-source.ts": ['export * from "./policy/x.ts";', 'export * from "node:path";'],
      "src/index.ts": ['export * from "./keeper/x.ts";', 'export * from "./cli/main.ts";'],
    });
    expect(found.sort()).toEqual([
      "src/decision.ts:1 noRestrictedImports",
      "src/errors.ts:1 noRestrictedImports",
      "src/errors.ts:2 noRestrictedImports",
      "src/index.ts:2 noRestrictedImports",
      "src/token-source.ts:1 noRestrictedImports",
      "src/token-source.ts:2 noRestrictedImports",
    ]);
  });

  test("lets plan take types, never values, from survey and machine", async () => {
    const path = "src/plan/x.ts";
    const found = await lint({
      [path]: [
        'import type { A } from "../survey/a.ts";',
        'export type { B } from "../machine/b.ts";',
        'export { c } from "../survey/c.ts";',
        'import { d } from "../machine/d.ts";',
        'export * from "../survey/e.ts";',
        'export const f = () => import("../machine/f.ts");',
        "export const g: A = d;",
      ],
    });
    expect(found.sort()).toEqual([3, 4, 5, 6].map((line) => `${path}:${line} plugin`));
  });

  test("keeps effects out of the pure rooms", async () => {
    const imports = ["path", "crypto", "fs", "fs/promises", "child_process", "os"];
    const lines = imports.map((name) => `export * from "node:${name}";`);
    const found = await lint({ "src/policy/x.ts": lines, "src/plan/x.ts": lines, "src/survey/x.ts": lines });
    expect(found.sort()).toEqual([
      ...[3, 4, 5, 6].map((line) => `src/plan/x.ts:${line} noRestrictedImports`),
      ...[2, 3, 4, 5, 6].map((line) => `src/policy/x.ts:${line} noRestrictedImports`),
    ]);
  });
});

describe("the linter forbids, in src,", () => {
  test("import cycles, also of types", async () => {
    const found = await lint({
      "src/keeper/a.ts": ['import type { B } from "./b.ts";', "export type A = B | 1;"],
      "src/keeper/b.ts": ['import type { A } from "./a.ts";', "export type B = A | 2;"],
    });
    expect(found.sort()).toEqual(["src/keeper/a.ts:1 noImportCycles", "src/keeper/b.ts:1 noImportCycles"]);
  });

  test("promises that nobody awaits, and conditions on a promise", async () => {
    const found = await lint({
      "src/keeper/a.ts": [
        "export async function work(): Promise<boolean> { return true; }",
        "export async function careful(): Promise<number> { return (await work()) ? 1 : 2; }",
        "export function careless(): void { work(); }",
        "export function confused(): number { return work() ? 1 : 2; }",
      ],
      "src/keeper/b.ts": ['import { work } from "./a.ts";', "export function imported(): void { work(); }"],
    });
    expect(found.sort()).toEqual([
      "src/keeper/a.ts:3 noFloatingPromises",
      "src/keeper/a.ts:4 noMisusedPromises",
      "src/keeper/b.ts:2 noFloatingPromises",
    ]);
  });

  test("default exports", async () => {
    const found = await lint({ "src/keeper/a.ts": ["export default 1;"], "src/keeper/b.ts": ["export const b = 1;"] });
    expect(found).toEqual(["src/keeper/a.ts:1 noDefaultExport"]);
  });

  test("console, outside the command line", async () => {
    const lines = ['console.error("x");'];
    expect(await lint({ "src/keeper/a.ts": lines, "src/cli/b.ts": lines })).toEqual(["src/keeper/a.ts:1 noConsole"]);
  });

  test("the process, outside src/cli/bin.ts and src/machine", async () => {
    const global = ["export const pid = process.pid;"];
    const imported = ['import process from "node:process";', "export const pid = process.pid;"];
    const found = await lint({
      "src/cli/bin.ts": global,
      "src/cli/main.ts": global,
      "src/config/b.ts": imported,
      "src/machine/a.ts": global,
      "src/machine/b.ts": imported,
      "src/keeper/a.ts": global,
      "src/keeper/b.ts": imported,
      "src/wall/b.ts": imported,
      "src/survey/b.ts": imported,
    });
    expect(found.sort()).toEqual([
      "src/cli/main.ts:1 noRestrictedGlobals",
      "src/config/b.ts:1 noRestrictedImports",
      "src/keeper/a.ts:1 noRestrictedGlobals",
      "src/keeper/b.ts:1 noRestrictedImports",
      "src/survey/b.ts:1 noRestrictedImports",
      "src/wall/b.ts:1 noRestrictedImports",
    ]);
  });
});
