import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
const { version, dependencies } = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as {
  version: string;
  dependencies: Record<string, string>;
};

/** A directory with nothing but the package, as `npm install podbot` leaves it. */
const home = await mkdtemp(join(tmpdir(), "podbot-package-"));
afterAll(() => rm(home, { recursive: true }));

async function run(command: string, ...args: string[]) {
  try {
    const { stdout, stderr } = await promisify(execFile)(command, args, { cwd: home });
    return { status: 0, stdout, stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { status: code, stdout, stderr };
  }
}

const podbot = join(home, "node_modules/.bin/podbot");

beforeAll(async () => {
  await writeFile(join(home, "package.json"), JSON.stringify({ private: true, type: "module" }));
  // Dependencies come from node_modules, so that neither network nor cache decides the test.
  const folders = Object.keys(dependencies).map((name) => join(root, "node_modules", name));
  const packed = await run("npm", "pack", "--silent", "--ignore-scripts", root, ...folders);
  expect(packed).toMatchObject({ status: 0 });
  const tarballs = packed.stdout.trim().split("\n");
  const installed = await run("npm", "install", "--offline", "--no-audit", ...tarballs.map((name) => `./${name}`));
  expect(installed).toMatchObject({ status: 0 });
});

test("the installed command says its version", async () => {
  expect(await run(podbot, "--version")).toMatchObject({ status: 0, stdout: expect.stringContaining(version) });
});

test("the installed command knows that it is outside, and that it is inside what it started", async () => {
  expect(await run(podbot, "check")).toMatchObject({ status: 1, stderr: "" });
  const refused = await run(podbot, "sandbox", "--", "true");
  expect(refused).toMatchObject({ status: 125, stderr: expect.stringContaining("lies where the sandbox may write") });
  await mkdir(join(home, "work"));
  expect(await run(podbot, "sandbox", "-C", "work", "--", "podbot", "check")).toMatchObject({ status: 0 });
});

test("the library can be imported and throws its own errors", async () => {
  const program = `
    import { PodbotError } from "podbot";
    import schema from "podbot/config.schema.json" with { type: "json" };
    const error = new PodbotError("USAGE", "message");
    console.log(error instanceof Error, error.code, typeof schema.properties);`;
  await writeFile(join(home, "program.mjs"), program);
  const { status, stdout } = await run(process.execPath, "program.mjs");
  expect({ status, stdout }).toEqual({ status: 0, stdout: "true USAGE object\n" });
});

test("its types serve a strict consumer", async () => {
  await writeFile(
    join(home, "consumer.ts"),
    `import { PodbotError } from "podbot";
     export const code: string = new PodbotError("USAGE", "message").code;
     // @ts-expect-error: not a code of Podbot's
     new PodbotError("NO_SUCH_CODE", "message");`,
  );
  const types = ["--typeRoots", join(root, "node_modules/@types"), "--types", "node"];
  const args = ["--noEmit", "--strict", "--target", "es2023", "--module", "nodenext", ...types, "consumer.ts"];
  const { status, stdout } = await run(join(root, "node_modules/.bin/tsc"), ...args);
  expect({ status, stdout }).toEqual({ status: 0, stdout: "" });
});
