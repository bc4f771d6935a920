import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { until } from "../eventually.ts";
import { pids, readIfThere, wordsOf } from "./read.ts";
import type { FileResult, SuiteResult } from "./results.ts";

const repository = join(import.meta.dirname, "../..");
const config = `export default { test: { include: ["*.test.ts"], pool: "forks", tags: [{ name: "security" }],
  setupFiles: ["${join(import.meta.dirname, "worker-setup.ts")}"],
  coverage: { provider: "v8", include: ["pure.ts"], reporter: [] } } };`;
const passing = `import { test } from "vitest"; import { pure } from "./pure.ts"; test("is sound", () => { pure(1); pure(0); });`;

/** A file whose test fails in some of its runs, counted from 1; or the file itself, or its set-up. */
const failingAt = (name: string, runs: readonly number[], tag = "//", around = "test('is sound', RUN);") => `${tag}
import { appendFileSync, readFileSync } from "node:fs";
import { beforeAll, expect, test } from "vitest";
const run = () => {
  appendFileSync("${name}.runs", "x");
  expect(${JSON.stringify(runs)}).not.toContain(readFileSync("${name}.runs").length);
};
${around.replace("RUN", "run")}`;

interface Ended {
  readonly status: number;
  readonly stdout: string;
  readonly result: SuiteResult;
}

/** A project of some test files beside one that passes. */
function makeProject(files: Readonly<Record<string, string>>): string {
  const place = join(repository, ".make/projects");
  mkdirSync(place, { recursive: true });
  const directory = mkdtempSync(join(place, "project-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const all = {
    "vitest.config.mjs": config,
    "pure.ts": "export const pure = (a: number) => (a ? 1 : 2);",
    "passing.test.ts": passing,
  };
  for (const [name, text] of Object.entries({ ...all, ...files })) writeFileSync(join(directory, name), text);
  return directory;
}

const words = [join(repository, "scripts/suite.mjs"), "fast"];

/** Runs it as `make test` runs this project. */
async function runProject(
  files: Readonly<Record<string, string>>,
  env: Record<string, string> = { CI: "true" },
): Promise<Ended> {
  const directory = makeProject(files);
  const { CI: _, ...inherited } = process.env;
  const ended = await new Promise<Omit<Ended, "result">>((resolve) => {
    execFile(process.execPath, words, { cwd: directory, env: { ...inherited, ...env } }, (error, stdout) =>
      resolve({ status: Number(error?.code ?? 0), stdout }),
    );
  });
  const result = readIfThere(join(directory, ".make/results/fast.json"));
  if (result === "") throw new Error(`the suite wrote no result:\n${ended.stdout}`);
  return { ...ended, result: JSON.parse(result) as SuiteResult };
}

const lastLine = ({ stdout }: Ended) => stdout.trim().split("\n").at(-1);
const namesOf = (files: readonly FileResult[]) => files.map(({ path }) => path).toSorted();

const tag = "// @module-tag security";
const skipping = `import { test } from "vitest"; test.skip("is left out", () => {});`;
const half = `import { test } from "vitest"; import { pure } from "./pure.ts"; test("is half", () => { pure(1); });`;

test("a file that failed once is run alone after the others, and named at the end", async () => {
  const ended = await runProject({
    "late.test.ts": failingAt("late", [1]),
    // One that guards a promise of security has to pass three times.
    "guard.test.ts": failingAt("guard", [1], tag),
    // Vitest skips the tests of a file whose set-up fails.
    "hook.test.ts": failingAt("hook", [1], "//", "beforeAll(RUN); test('is sound', () => {});"),
    // A file that cannot be imported has no tests that say what they guard.
    "import.test.ts": failingAt("import", [1], tag, "(RUN)(); test('is sound', () => {});"),
    // A worker that dies takes its file with it.
    "dies.test.ts": `import { existsSync, writeFileSync } from "node:fs"; import { test } from "vitest";
      test("is sound", () => {
        if (existsSync("died")) return;
        writeFileSync("died", "");
        process.kill(process.pid, "SIGKILL");
      });`,
    // What only a run alone has reached of the pure files counts.
    "passing.test.ts": half,
    "rest.test.ts": `import { pure } from "./pure.ts"; ${failingAt("rest", [1])} test("is the rest", () => { pure(0); });`,
  });
  const names = ["dies.test.ts", "guard.test.ts", "hook.test.ts", "import.test.ts", "late.test.ts", "rest.test.ts"];
  expect(ended).toMatchObject({ status: 0, result: { passed: true } });
  expect(namesOf(ended.result.passedAlone)).toEqual(names);
  expect(lastLine(ended)).toMatch(/^tests: 2 passed, 0 failed, 0 skipped; passed alone: /);
  expect(lastLine(ended)?.split("passed alone: ")[1]?.split(", ").toSorted()).toEqual(names);
  expect(ended.stdout).toMatch(/^passed alone: late\.test\.ts: is sound: expected \[ 1 \] to not include 1$/m);
  expect(ended.stdout).toContain("once more, alone: guard.test.ts (3 times)\n");
  expect(ended.stdout).toContain("once more, alone: import.test.ts (3 times)\n");
  expect(ended.stdout).toContain("once more, alone: late.test.ts\n");
});

test("what fails again, is not reached, is skipped or is not caught fails the run", async () => {
  const ended = await runProject({
    "broken.test.ts": failingAt("broken", [1, 2]),
    "guard.test.ts": failingAt("guard", [1, 4], tag),
    "passing.test.ts": half,
    "skips.test.ts": skipping,
    "stray.test.ts": `import { test } from "vitest"; test("starts it", () => { Promise.reject(new Error("astray")); });`,
  });
  expect(ended).toMatchObject({ status: 1, result: { passed: false, passedAlone: [] } });
  expect(lastLine(ended)).toBe("tests: 2 passed, 3 failed, 1 skipped");
  expect(ended.stdout).toMatch(/^not covered: pure\.ts: .*branches 50 %.*lines 1$/m);
  expect(ended.stdout).toMatch(/^tests were skipped, which CI does not allow$/m);
  expect(ended.stdout).toMatch(/^failed: stray\.test\.ts: the file itself: astray$/m);
  expect(namesOf(ended.result.files.filter(({ failures }) => failures.length > 0))).toEqual([
    "broken.test.ts",
    "guard.test.ts",
    "stray.test.ts",
  ]);
});

/** What a worker loads before it reports its file. The worker dies there, or only the first one does. */
const dyingRunner = (condition: string) => `import { existsSync, writeFileSync } from "node:fs";
  export { VitestTestRunner as default } from "vitest/runners";
  if (${condition}) { writeFileSync("died", ""); process.kill(process.pid, "SIGKILL"); }`;

test("a file whose worker does not start has failed, and may pass alone", async () => {
  const withRunner = config.replace("test: {", 'test: { runner: "./runner.ts",');
  const files = { "vitest.config.mjs": withRunner, "half.test.ts": half };
  const once = await runProject({ ...files, "runner.ts": dyingRunner(`!existsSync("died")`) });
  expect(once).toMatchObject({ status: 0, result: { passed: true } });
  expect(once.stdout).toMatch(/^passed alone: (half|passing)\.test\.ts: the file itself: its worker did not start$/m);
  const never = await runProject({ ...files, "runner.ts": dyingRunner("true") });
  expect(never).toMatchObject({ status: 1, result: { passed: false, passedAlone: [] } });
  expect(lastLine(never)).toBe("tests: 0 passed, 2 failed, 0 skipped");
});

test("outside CI a file that failed has failed, and a skipped test is no failure", async () => {
  const ended = await runProject({ "late.test.ts": failingAt("late", [1]), "skips.test.ts": skipping }, {});
  expect(ended.status).toBe(1);
  expect(ended.stdout).not.toMatch(/CI does not allow|once more/);
  expect(lastLine(ended)).toBe("tests: 1 passed, 1 failed, 1 skipped");
});

test("a file that stands still is killed, with what it has started, and the others go on", async () => {
  const hanging = `sleep 301.${process.pid}`;
  const blocked = `import { spawnSync } from "node:child_process"; import { test } from "vitest";
    test("waits for a program that hangs", () => { spawnSync("sh", ["-c", "exec ${hanging}"]); });`;
  const slow = config.replace("test: {", "test: { testTimeout: 3_000, hookTimeout: 3_000,");
  const ended = await runProject({ "blocked.test.ts": blocked, "vitest.config.mjs": slow }, {});
  expect(ended).toMatchObject({ status: 1, result: { passed: false } });
  expect(lastLine(ended)).toMatch(/^tests: 1 passed, 1 failed, /);
  expect(ended.stdout).toMatch(/^failed: blocked\.test\.ts: the file itself: its worker died$/m);
  expect(ended.stdout).toMatch(/^killed after 9 s: blocked\.test\.ts, /m);
  expect(ended.stdout).toMatch(new RegExp(`^ {2}\\d+ S \\S+ ${hanging}$`, "m"));
  await until("what it has started has ended", () => !pids().map(wordsOf).includes(hanging));
});

/** Starts a process, says which run it belongs to, and never ends. */
const endless = `import { spawn } from "node:child_process"; import { writeFileSync } from "node:fs"; import { test } from "vitest";
test("goes on", async () => {
  const { pid } = spawn("sleep", ["300"], { detached: true });
  writeFileSync("begun", JSON.stringify({ pid, temporary: process.env.TMPDIR }));
  await new Promise(() => {});
}, 300_000);`;

test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)(
  "%s removes what the tests have made, and then ends the run",
  async (signal) => {
    const directory = makeProject({ "endless.test.ts": endless });
    const child = spawn(process.execPath, words, { cwd: directory, stdio: "ignore" });
    const exited = once(child, "exit");
    await until("the test runs", () => readIfThere(join(directory, "begun")).endsWith("}"));
    const { pid, temporary } = JSON.parse(readIfThere(join(directory, "begun"))) as { pid: number; temporary: string };
    expect([wordsOf(pid), existsSync(temporary)]).toEqual(["sleep 300", true]);
    child.kill(signal);
    // A library of Vitest's ends the process by the number that a shell gives a signal.
    expect([`${[null, signal]}`, `${[128 + constants.signals[signal], null]}`]).toContain(`${await exited}`);
    expect([wordsOf(pid), existsSync(dirname(temporary))]).toEqual(["", false]);
  },
);

test("a reader that leaves ends the run as a hang-up does", async () => {
  const directory = makeProject({ "endless.test.ts": endless });
  const child = spawn(process.execPath, words, { cwd: directory, stdio: ["ignore", "pipe", "ignore"] });
  const exited = once(child, "exit");
  child.stdout.destroy();
  expect([",SIGHUP", "129,"]).toContain(`${await exited}`);
  const begun = readIfThere(join(directory, "begun"));
  if (begun !== "") expect(existsSync(dirname((JSON.parse(begun) as { temporary: string }).temporary))).toBe(false);
});
