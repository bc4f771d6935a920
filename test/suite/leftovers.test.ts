import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { expect, inject, onTestFinished, test } from "vitest";
import { until } from "../eventually.ts";
import { leftovers, machineState } from "./leftovers.ts";
import { wordsOf } from "./read.ts";

const mark = "PODBOT_CI_RUN=test";

test("what was there before is not left behind", () => {
  const before = machineState(mark);
  expect(leftovers(before, before)).toEqual({ ours: [], others: [] });
});

test("a process and a file that are new are found, and whose they are", async () => {
  const before = machineState(mark);
  const directory = mkdtempSync(`/var/tmp/podbot-test-${inject("run").id}-`);
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const start = async (cwd: string, env: NodeJS.ProcessEnv) => {
    const child = spawn("sh", ["-c", "echo ready; exec sleep 60"], { cwd, env });
    onTestFinished(() => void child.kill());
    await once(child.stdout, "data");
    await until("it sleeps", () => wordsOf(child.pid as number) === "sleep 60");
    return `process ${child.pid} of podbot's tests: sleep 60`;
  };
  const inside = await start(directory, {});
  const marked = await start("/", { PODBOT_CI_RUN: "test" });
  const other = await start(process.cwd(), {});
  const { ours, others } = leftovers(before, machineState(mark));
  expect(ours).toEqual(expect.arrayContaining([directory, inside, marked]));
  expect([...ours, ...others]).not.toContain(other);
});

test("networks, cgroups and containers are ours whatever they are called, other things by their name", () => {
  const nothing = { certain: [], shared: [] };
  const after = {
    certain: ["network namespace x", "cgroup /sys/fs/cgroup/libpod_parent"],
    shared: ["/tmp/something", "mount /run/user/1000", "mount /var/tmp/podbot-run-x/tmp", "/tmp/podbot-x"],
  };
  expect(leftovers(nothing, after)).toEqual({
    ours: [...after.certain, "mount /var/tmp/podbot-run-x/tmp", "/tmp/podbot-x"],
    others: ["/tmp/something", "mount /run/user/1000"],
  });
  const { certain, shared } = machineState(mark);
  expect([...certain, ...shared]).toEqual(expect.arrayContaining(["mount /", "network interface lo"]));
});
