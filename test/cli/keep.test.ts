import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { eventually } from "../eventually.ts";
import type { World } from "../world.ts";
import { expectNothingLeft, processesOf, sessionWorld } from "./terminal/remains.ts";

/** As a supervisor would start it: no terminal, output somewhere, and signals when it is to end. */
function keep(world: World, command: readonly string[], ...flags: string[]) {
  const child = world.spawn(["keep", "--agent", "custom", ...flags, "--", ...command], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const said = { stdout: "", stderr: "" };
  child.stdout?.on("data", (text: Buffer) => {
    said.stdout += text;
  });
  child.stderr?.on("data", (text: Buffer) => {
    said.stderr += text;
  });
  return { child, said, ended: once(child, "close") };
}

describe("podbot keep", () => {
  test("prints the id, ends with the agent and with its status; the log stays", async () => {
    const world = sessionWorld();
    const { said, ended } = keep(world, ["sh", "-c", "echo logged; exit 6"]);
    expect(await ended).toEqual([6, null]);
    expect(said.stdout).toMatch(/^[a-z0-9]{10}\n$/);
    expect(said.stderr).toBe("");
    const id = said.stdout.trim();
    expect((await world.podbot(["ps"])).stdout).toContain("ended (6)");
    expect((await world.podbot(["logs", id])).stdout).toBe("logged\n");
    expect(processesOf(world)).toEqual([]);
  });

  test.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)("ends in order with %s", async (signal) => {
    const world = sessionWorld();
    const script = "trap 'echo bye; exit 0' TERM; echo go >ready; while :; do sleep 0.1; done";
    const { child, said, ended } = keep(world, ["sh", "-c", script]);
    await eventually(() => expect(world.outside("cat ready").stdout).toBe("go\n"));
    await eventually(() => expect(said.stdout).not.toBe(""));
    child.kill(signal);
    expect([...(await ended), said.stderr]).toEqual([0, null, ""]);
    const id = said.stdout.trim();
    expect((await world.podbot(["logs", id])).stdout).toBe("bye\n");
    expect((await world.podbot(["ps"])).stdout).toContain("ended (0)");
    expect(processesOf(world)).toEqual([]);
    expect((await world.podbot(["stop", id])).status).toBe(0);
    await expectNothingLeft(world);
  });

  test("ends with 137 where the agent does not end when it is told to", async () => {
    const world = sessionWorld();
    const script = "trap '' TERM; echo go >ready; while :; do sleep 0.1; done";
    const { said, ended } = keep(world, ["sh", "-c", script]);
    await eventually(() => expect(world.outside("cat ready").stdout).toBe("go\n"));
    await eventually(() => expect(said.stdout).not.toBe(""));
    const id = said.stdout.trim();
    expect((await world.podbot(["stop", "--time", "0", id])).status).toBe(0);
    expect([...(await ended), said.stderr]).toEqual([137, null, ""]);
    await expectNothingLeft(world);
  });

  test("leaves nothing running when SIGTERM comes at any moment of its start", async () => {
    const world = sessionWorld();
    for (const delayMs of [30, 60, 90, 120, 150, 180, 220, 260, 300]) {
      const { child, ended } = keep(world, ["sleep", "300"]);
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      child.kill("SIGTERM");
      await ended;
      await eventually(() => expect(processesOf(world)).toEqual([]));
      const states = JSON.parse((await world.podbot(["ps", "--json"])).stdout) as { readonly state: string }[];
      expect(states.every(({ state }) => state === "ended")).toBe(true);
    }
  });

  test("prints one line of JSON", async () => {
    const world = sessionWorld();
    const { said, ended } = keep(world, ["true"], "--json");
    expect(await ended).toEqual([0, null]);
    expect(said.stdout.trimEnd().split("\n")).toHaveLength(1);
    expect(JSON.parse(said.stdout)).toMatchObject({ cwd: world.project, command: ["true"] });
  });

  test("says why it cannot start, and leaves no record", async () => {
    const world = sessionWorld();
    const { said, ended } = keep(world, ["/no/such/program"]);
    expect(await ended).toEqual([127, null]);
    expect(said.stdout).toBe("");
    expect(said.stderr).toContain("COMMAND_NOT_FOUND");
    await expectNothingLeft(world);
  });

  test("goes on when whoever reads what it says has left", async () => {
    const world = sessionWorld();
    const { child, said } = keep(world, ["sh", "-c", "while :; do echo more; sleep 0.1; done"]);
    await eventually(() => expect(said.stdout).not.toBe(""));
    child.stdout?.destroy();
    child.stderr?.destroy();
    const id = said.stdout.trim();
    expect((await world.podbot(["exec", id, "echo", "alive"])).stdout).toBe("alive\n");
  });
});
