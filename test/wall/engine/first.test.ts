// @module-tag security
import { spawn } from "node:child_process";
import { describe, expect, onTestFinished, test } from "vitest";
import { networkOf } from "../../../src/machine/network-namespace.ts";
import { markOf, type ProcessMark } from "../../../src/machine/process-mark.ts";
import type { ContainerPlan } from "../../../src/plan/container.ts";
import { confirmNetwork, findFirst } from "../../../src/wall/engine/first.ts";
import { say, startEngine } from "../../engine/engine-server.ts";
import { until } from "../../eventually.ts";
import { asRoot } from "../../native/programs.ts";
import { childrenOf } from "../../native/warden.ts";
import { type ContainerChange, planInImage } from "../../plan/ordinary.ts";

const id = "5f".repeat(32);
const uid = process.getuid?.() ?? 0;

/** An engine that says that this is the container's process. */
async function naming(pid: number) {
  const body = { Id: id, Name: "/podbot-x", State: { Status: "running", Pid: pid } };
  const { client } = await startEngine({
    [`GET /v1.40/containers/${id}/json`]: (_, response) => say(response, 200, body),
  });
  return { client, id, started: Promise.resolve() };
}

/** The first process of a pid namespace, with a network of its own. */
async function startBox(): Promise<ProcessMark> {
  const words = [...asRoot, "--pid", "--net", "--fork", "--kill-child", "sleep", "300"];
  const child = spawn("unshare", words, { stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  let first: number | undefined;
  await until("there is a first process", () => {
    [first] = childrenOf(child.pid as number);
    return first !== undefined && networkOf(first) !== networkOf(process.pid);
  });
  return markOf(first as number) as ProcessMark;
}

const containerOf = (change: ContainerChange = {}) => planInImage([], {}, change).container as ContainerPlan;
const self = markOf(process.pid) as ProcessMark;

describe("a container's first process", () => {
  const find = async (caller: Parameters<typeof findFirst>[1], change: ContainerChange = {}) =>
    findFirst({ ...(await naming(0)), container: containerOf(change) }, caller);
  const rootful = { engine: { rootless: false }, caller: { uid: 1234, gid: 1234 } };

  test("is the one that has called, if it is the user's that was planned", async () => {
    // Root of a rootless engine is the caller.
    expect(await find({ uid, process: self })).toBe(self);
    expect(await find({ uid: 1234, process: self }, rootful)).toBe(self);
    const other = find({ uid: 4321, process: self }, rootful);
    await expect(other).rejects.toMatchObject({ code: "WALL_FAILED", message: expect.stringContaining("4321") });
    // Whom an engine makes of it, only the engine knows.
    const engine = { ...rootful.engine, remapped: true };
    expect(await find({ uid: 100_000, process: self }, { ...rootful, engine })).toBe(self);
  });

  test.each([
    ["the kernel could not be asked", null],
    ["it has ended, or has no number here", { uid, process: null }],
  ])("is none where %s, and no number of the engine's takes its place", async (_, caller) => {
    const made = { ...(await naming(process.pid)), container: containerOf() };
    await expect(findFirst(made, caller)).rejects.toMatchObject({ code: "WALL_FAILED" });
  });

  test("is gVisor's own where it has the same parent as the one that has called", async () => {
    const gvisor = containerOf({ engine: { runtime: "runsc" } });
    const children = [1, 2].map(() => spawn("sleep", ["300"], { stdio: "ignore" }));
    onTestFinished(() => children.forEach((child) => void child.kill("SIGKILL")));
    const [caller, named] = children.map(({ pid }) => markOf(pid as number) as ProcessMark) as [
      ProcessMark,
      ProcessMark,
    ];
    const found = await findFirst({ ...(await naming(named.pid)), container: gvisor }, { uid, process: caller });
    expect(found).toEqual(named);
    const stranger = { ...(await naming(1)), container: gvisor };
    await expect(findFirst(stranger, { uid, process: caller })).rejects.toMatchObject({ code: "WALL_FAILED" });
  });
});

describe("the network of a container", () => {
  test("must be that of the process which the engine names", async () => {
    const [first, other] = await Promise.all([startBox(), startBox()]);
    const network = networkOf(first.pid) as string;
    await confirmNetwork({ ...(await naming(first.pid)), first }, network);
    const confusion = confirmNetwork({ ...(await naming(other.pid)), first }, network);
    await expect(confusion).rejects.toMatchObject({ code: "WALL_FAILED", message: expect.stringContaining("network") });
  });

  test("is not doubted where the engine names none, or counts as another machine does", async () => {
    const first = await startBox();
    const network = networkOf(first.pid) as string;
    for (const pid of [0, process.pid]) await confirmNetwork({ ...(await naming(pid)), first }, network);
  });
});
