import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, inject, onTestFinished, test } from "vitest";
import { ownMark } from "../../src/machine/process.ts";
import { erase } from "./erase.ts";
import { deadRuns, newRun, ownerName, type Run, setOwner } from "./run.ts";
import { processesOf } from "./traces.ts";

/** Where other suites that start meanwhile look for no dead runs. */
const place = mkdtempSync(join(tmpdir(), "runs-"));

/** A run whose main process is gone, as one that was killed. */
function deadRun(): Run {
  const run = newRun(place);
  rmSync(join(run.directory, ownerName));
  setOwner(run, `4194304 1 ${readlinkSync("/proc/self/ns/pid")}`);
  return run;
}

test("the temporary files of this test lie in the directory of its run", () => {
  expect(process.env["TMPDIR"]).toBe(inject("run").temporary);
  expect(deadRuns().map(({ id }) => id)).not.toContain(inject("run").id);
});

test("what a killed run has left is found and removed: files, and processes however they are started", async () => {
  const run = deadRun();
  expect(deadRuns(place)).toContainEqual(run);
  const script = "echo ready; exec sleep 60";
  const children = [
    spawn("sh", ["-c", script], { env: { ...process.env, HOME: join(run.temporary, "home") } }),
    spawn("sh", ["-c", script], { env: { PATH: process.env["PATH"], ...run.env } }),
    spawn("node", ["-e", "console.log('ready'); setInterval(() => {}, 1000)", `${run.directory}/x`], {
      env: { PATH: process.env["PATH"] },
    }),
  ];
  onTestFinished(() => children.forEach((child) => void child.kill("SIGKILL")));
  await Promise.all(children.map((child) => once(child.stdout, "data")));
  const pids = children.map(({ pid }) => pid);
  expect(
    processesOf(run)
      .map(({ pid }) => pid)
      .toSorted(),
  ).toEqual(pids.toSorted());
  // Not even its owner may enter it.
  mkdirSync(join(run.temporary, "closed"));
  writeFileSync(join(run.temporary, "closed/file"), "");
  chmodSync(join(run.temporary, "closed"), 0);
  const held = join(userInfo().homedir, ".local/state/podbot/held");
  mkdirSync(held, { recursive: true });
  const claims = [run.directory, inject("run").temporary].map((directory, at) => {
    // Podbot itself removes those of dead processes.
    const path = join(held, `${process.pid}-test${inject("run").id}${at}.json`);
    const names = [{ path: `${directory}/project/.podbot`, placeholder: { kind: "directory" } }];
    writeFileSync(path, JSON.stringify({ ...ownMark(), names }));
    onTestFinished(() => rmSync(path, { force: true }));
    return path;
  });
  const left = await erase(run);
  expect(left).toHaveLength(3);
  expect(claims.map((path) => existsSync(path))).toEqual([false, true]);
  expect(processesOf(run)).toEqual([]);
  expect(existsSync(run.directory)).toBe(false);
});

test("the empty directory of a run that was killed before it wrote its owner is removed", () => {
  const run = deadRun();
  rmSync(run.directory, { recursive: true });
  mkdirSync(run.directory);
  expect(deadRuns(place)).not.toContainEqual(run);
  expect(existsSync(run.directory)).toBe(false);
});

test("a process that is about to end is waited for, and is not called left behind", async () => {
  const run = deadRun();
  const child = spawn("sh", ["-c", "echo ready; read -r _; sleep 0.2"], { env: { ...process.env, ...run.env } });
  await once(child.stdout, "data");
  child.stdin.end();
  expect(await erase(run, 20_000)).toEqual([]);
  expect(await text(child.stdout)).toBe("");
});

test("a shell of a developer's that stands in the directory is left alone", async () => {
  const run = deadRun();
  const env = { PATH: process.env["PATH"], PWD: run.temporary, OLDPWD: run.directory };
  const child = spawn("sh", ["-c", "echo ready; exec sleep 60"], { env, cwd: run.temporary });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child.stdout, "data");
  expect(processesOf(run)).toEqual([]);
  expect(await erase(run)).toEqual([]);
  expect(child.exitCode).toBe(null);
});
