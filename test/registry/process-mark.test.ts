import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { lookAt, markOf } from "../../src/machine/process-mark.ts";
import { deadMark, liveMark } from "./sessions.ts";

async function until(check: () => boolean): Promise<void> {
  while (!check()) await wait(5);
}

test("a process that lives is seen to, also stopped, and then not any more", async () => {
  const child = spawn("sleep", ["60"], { stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child, "spawn");
  const mark = liveMark(child.pid);
  expect(lookAt(mark)).toBe("alive");
  child.kill("SIGSTOP");
  await until(() => lookAt(mark) === "stopped");
  child.kill("SIGCONT");
  await until(() => lookAt(mark) === "alive");
  child.kill("SIGKILL");
  await once(child, "exit");
  expect(lookAt(mark)).toBe("dead");
  expect(markOf(child.pid as number)).toBeNull();
});

test("one that has ended and waits to be mourned is dead", async () => {
  // The shell becomes a sleep that never asks after the child it has left.
  const child = spawn("sh", ["-c", "sleep 0.05 & echo $!; exec sleep 60"], { stdio: ["ignore", "pipe", "ignore"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [said] = await once(child.stdout, "data");
  const mark = liveMark(Number(said));
  await until(() => / Z /.test(readFileSync(`/proc/${mark.pid}/stat`, "latin1")));
  expect(lookAt(mark)).toBe("dead");
});

test("another process with the same number is not taken for it", () => {
  expect(lookAt(deadMark())).toBe("dead");
});

test("of another pid namespace nothing is known, of an earlier boot everything", () => {
  const mark = liveMark();
  const [boot] = mark.space.split(" ");
  expect(lookAt({ ...mark, space: `${boot} pid:[1]` })).toBe("elsewhere");
  expect(lookAt({ ...mark, space: mark.space.replace(boot as string, "00000000") })).toBe("dead");
});

test("of another machine nothing is known, though its boot is another one", () => {
  const mark = liveMark();
  expect(lookAt({ ...mark, space: "00000000 pid:[1]", machine: "another" })).toBe("elsewhere");
});

test("what names the machine does not give its id away", () => {
  expect(liveMark().machine).toMatch(/^([0-9a-f]{16})?$/);
});
