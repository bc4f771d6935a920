import { execFile } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { transform } from "esbuild";
import { afterAll, describe, expect, test } from "vitest";
import { loadConfig } from "../../src/index.ts";
import { newWorld, type World } from "../world.ts";
import { type Block, readBlocks, root } from "./pages.ts";
import { expectShown, needsMachine, newStage, play, playOnMachine, withRealId } from "./stage.ts";

const prompted = readBlocks("sh").filter(({ lines }) => lines.some((line) => line.startsWith("$ ")));
const snippets = readBlocks("ts");

/** In the project's own directory, so that `podbot` is the package itself, as others would import it. */
const workshop = join(root, ".make", `docs-${process.pid}`);
mkdirSync(workshop, { recursive: true });
afterAll(() => rmSync(workshop, { recursive: true }));

/** A session as it would be typed: `$ ` begins a command, `> ` goes on with it, the rest is what it prints. */
function sessionOf({ lines }: Block): readonly { readonly command: string; readonly shown: readonly string[] }[] {
  const session: { command: string; shown: string[] }[] = [];
  for (const line of lines) {
    const last = session.at(-1);
    if (line.startsWith("$ ")) session.push({ command: line.slice(2), shown: [] });
    else if (last === undefined) throw new Error(`output without a command: ${line}`);
    else if (line.startsWith("> ") && last.shown.length === 0) last.command += `\n${line.slice(2)}`;
    else last.shown.push(line);
  }
  return session;
}

function perform({ lines }: Block, program: string, fileOn: (stage: World) => string): Promise<string> {
  if (needsMachine(lines)) return playOnMachine((stage) => [program, fileOn(stage)]);
  const stage = newStage();
  return play(stage, program, fileOn(stage));
}

describe.concurrent("an example for the shell prints what the page shows", () => {
  test.each(prompted.map((block) => [block.place, block] as const))("%s", async (_, block) => {
    const session = sessionOf(block);
    const mark = "__status=$?; printf '\\036'; (exit $__status)";
    const script = session.map(({ command }) => `${withRealId(command)}\n${mark}\n`).join("");
    const printed = (await perform(block, "bash", (stage) => stage.file("session.sh", script))).split("\u001e");
    for (const [at, { shown }] of session.entries()) expectShown(printed[at] ?? "", shown);
  });
});

describe.concurrent("an example for the library prints what its comments say", () => {
  test.each(snippets.map((block, at) => [block.place, block, at] as const))("%s", async (_, block, at) => {
    const { lines } = block;
    const { code } = await transform(lines.join("\n"), { loader: "ts", format: "esm" });
    const file = join(workshop, `${at}.mjs`);
    writeFileSync(file, code);
    const shown = lines.flatMap((line) => /\/\/ → (.*)$/.exec(line)?.[1] ?? []);
    expect(shown.length).toBeGreaterThan(0);
    expectShown(await perform(block, process.execPath, () => file), shown);
  });
});

test("examples for the library have the types that the package declares", async () => {
  for (const [at, { lines }] of snippets.entries()) writeFileSync(join(workshop, `${at}.ts`), lines.join("\n"));
  const config = join(workshop, "tsconfig.json");
  writeFileSync(config, JSON.stringify({ extends: "../../tsconfig.json", include: ["*.ts"] }));
  const tsc = [join(root, "node_modules/typescript/bin/tsc"), "-p", config];
  const { stdout } = await promisify(execFile)(process.execPath, tsc).catch((error) => error);
  expect(stdout).toBe("");
});

describe("an example of a configuration loads", () => {
  test.each(readBlocks("toml").map(({ place, lines }) => [place, lines] as const))("%s", async (_, lines) => {
    const { project, home, env, file } = fileIn(lines);
    const { warnings } = await loadConfig({ cwd: project, home, env, configFile: file });
    expect(warnings).toEqual([]);
  });
});

function fileIn(lines: readonly string[]) {
  const world = newWorld();
  return {
    project: world.project,
    home: world.home,
    env: world.env,
    file: world.file("example.toml", lines.join("\n")),
  };
}
