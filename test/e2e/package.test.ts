import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Keeper, Warden } from "../native/warden.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const { version, dependencies } = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as {
  version: string;
  dependencies: Record<string, string>;
};

/** A directory with nothing but the package, as `npm install podbot` leaves it. */
const directory = await mkdtemp(join(tmpdir(), "podbot-package-"));
const home = await mkdtemp(join(tmpdir(), "podbot-home-"));
afterAll(() => Promise.all([directory, home].map((path) => rm(path, { recursive: true }))));

async function run(command: string, ...args: string[]) {
  return await runWith({}, command, ...args);
}

async function runWith(env: Readonly<Record<string, string>>, command: string, ...args: string[]) {
  try {
    const { stdout, stderr } = await promisify(execFile)(command, args, {
      cwd: directory,
      env: { ...process.env, HOME: home, ...env },
    });
    return { status: 0, stdout, stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { status: code, stdout, stderr };
  }
}

const podbot = join(directory, "node_modules/.bin/podbot");

beforeAll(async () => {
  await writeFile(join(directory, "package.json"), JSON.stringify({ private: true, type: "module" }));
  // Dependencies come from node_modules, so that neither network nor cache decides the test.
  const folders = Object.keys(dependencies).map((name) => join(root, "node_modules", name));
  const packed = [
    await run("npm", "pack", "--silent", root),
    await run("npm", "pack", "--silent", "--ignore-scripts", ...folders),
  ];
  expect(packed).toMatchObject([{ status: 0 }, { status: 0 }]);
  const tarballs = packed.flatMap(({ stdout }) => stdout.trim().split("\n"));
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
  await mkdir(join(directory, "work"));
  expect(await run(podbot, "sandbox", "-C", "work", "--", "podbot", "check")).toMatchObject({ status: 0 });
});

test("the library can be imported and throws its own errors", async () => {
  const program = `
    import { PodbotError } from "podbot";
    import schema from "podbot/config.schema.json" with { type: "json" };
    const error = new PodbotError("USAGE", "message");
    console.log(error instanceof Error, error.code, typeof schema.properties);`;
  await writeFile(join(directory, "program.mjs"), program);
  const { status, stdout } = await run(process.execPath, "program.mjs");
  expect({ status, stdout }).toEqual({ status: 0, stdout: "true USAGE object\n" });
});

test("its types serve a strict consumer", async () => {
  await writeFile(
    join(directory, "consumer.ts"),
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

const architectures = [
  { arch: "x64", machine: 0x3e, emulator: "qemu-x86_64-static" },
  { arch: "arm64", machine: 0xb7, emulator: "qemu-aarch64-static" },
];

describe.each(architectures)("its programs for $arch", ({ arch, machine, emulator }) => {
  const program = (name: string) => join(directory, "node_modules/podbot/native/bin", arch, `podbot-${name}`);
  const emulation = arch === process.arch ? [] : [emulator];
  const isRunnable = emulation.length === 0 || findOnPath(emulator);

  test.each(["launch", "enter", "shim", "warden", "gate", "peer", "raw"])(
    "have podbot-%s, which needs nothing else",
    async (name) => {
      const elf = await readFile(program(name));
      expect(elf.subarray(0, 6)).toEqual(Buffer.from("\x7fELF\x02\x01", "latin1"));
      expect(elf.readUInt16LE(18)).toBe(machine);
      expect(segmentTypes(elf)).toContain(1); // something to load
      expect(segmentTypes(elf)).not.toContain(3); // no dynamic linker
      expect((await stat(program(name))).mode & 0o111).toBe(0o111);
    },
  );

  test.skipIf(!isRunnable)("become a command", async () => {
    const [command = "", ...words] = [...emulation, program("enter"), "2", "--", "echo", "entered"];
    expect(await run(command, ...words)).toEqual({ status: 0, stdout: "entered\n", stderr: "" });
  });

  test.skipIf(!isRunnable)("start commands on request", async () => {
    const keeper = new Keeper(join(directory, `${arch}.sock`));
    await keeper.listen();
    const [command = "", ...words] = [...emulation, program("warden"), keeper.path];
    const warden = new Warden(command, words, keeper.token);
    const outcome = await keeper.run(["sh", "-c", "cat; echo err >&2; exit 7"], { input: "in" });
    expect(outcome).toMatchObject({ end: [0, 7], output: Buffer.from("in"), errors: Buffer.from("err\n") });
    const onTerminal = await keeper.run(["stty", "size"], { terminal: [30, 100] });
    expect(onTerminal).toMatchObject({ end: [0, 0], output: Buffer.from("30 100\r\n") });
    expect(await warden.end()).toEqual({ status: 143, signal: null, complaints: "" });
    await keeper.close();
  });
});

test("nothing is packed while a program is missing", async () => {
  const copy = join(directory, "copy");
  const parts = ["package.json", "native"];
  // With their times, else every program would be compiled anew.
  for (const part of parts) await cp(join(root, part), join(copy, part), { recursive: true, preserveTimestamps: true });
  const pack = (env = {}) => runWith(env, "npm", "pack", "--pack-destination", directory, copy);
  expect(await pack()).toMatchObject({ status: 0 });
  const [other] = architectures.filter(({ arch }) => arch !== process.arch);
  await rm(join(copy, "native/bin", other?.arch ?? "", "podbot-gate"));
  const refused = await pack({ OTHER_CC: "/nonexistent/compiler" });
  expect(refused.status).not.toBe(0);
  expect(refused.stderr).toContain("/nonexistent/compiler");
});

function segmentTypes(elf: Buffer): number[] {
  const [at, size, count] = [Number(elf.readBigUInt64LE(32)), elf.readUInt16LE(54), elf.readUInt16LE(56)];
  return Array.from({ length: count }, (_, i) => elf.readUInt32LE(at + i * size));
}

function findOnPath(name: string): boolean {
  return (process.env["PATH"] ?? "").split(":").some((directory) => existsSync(join(directory, name)));
}
