import { describe, expect, test } from "vitest";
import { eventually } from "../eventually.ts";
import { expectNothingLeft, sessionsOf, sessionWorld, startDetached, startIdle } from "./terminal/remains.ts";

describe("podbot stop", () => {
  test("ends several sessions and says which, whatever state they are in", async () => {
    const world = sessionWorld();
    const ended = startDetached(world, ["true"]);
    const running = startIdle(world);
    const other = startIdle(world);
    await eventually(async () => expect((await world.podbot(["ps"])).stdout).toContain("ended (0)"));
    expect(await world.podbot(["stop", ended, running.slice(0, 6), running])).toEqual({
      status: 0,
      stdout: `${ended}\n${running}\n`,
      stderr: "",
    });
    expect((await world.podbot(["ps", "-q"])).stdout).toBe(`${other}\n`);
    expect((await world.podbot(["exec", other, "echo", "alive"])).stdout).toBe("alive\n");
  });

  test("ends all with --all, also where there is nothing", async () => {
    const world = sessionWorld();
    const ids = [startIdle(world), startIdle(world), startDetached(world, ["true"])];
    const outcome = await world.podbot(["stop", "--all"]);
    expect(outcome).toMatchObject({ status: 0, stderr: "" });
    expect(outcome.stdout.trim().split("\n").sort()).toEqual([...ids].sort());
    await expectNothingLeft(world);
    expect(await world.podbot(["stop", "--all"])).toEqual({ status: 0, stdout: "", stderr: "" });
  });

  test("lets the agent end in order", async () => {
    const world = sessionWorld();
    const id = startDetached(world, [
      "sh",
      "-c",
      "trap 'echo bye >farewell; exit' TERM; echo go >ready; while :; do sleep 0.1; done",
    ]);
    await eventually(() => expect(world.outside("cat ready").stdout).toBe("go\n"));
    expect((await world.podbot(["stop", id])).status).toBe(0);
    expect(world.outside("cat farewell").stdout).toBe("bye\n");
    await expectNothingLeft(world);
  });

  test("waits no longer than --time for an agent that does not want to end", async () => {
    const world = sessionWorld();
    const id = startDetached(world, ["sh", "-c", "trap '' TERM HUP; while :; do sleep 1; done"]);
    expect(await world.podbot(["stop", "--time", "200ms", id])).toEqual({ status: 0, stdout: `${id}\n`, stderr: "" });
    await expectNothingLeft(world);
  });

  test("finds nothing the second time", async () => {
    const world = sessionWorld();
    const id = startIdle(world);
    expect((await world.podbot(["stop", id])).status).toBe(0);
    const again = await world.podbot(["stop", id]);
    expect(again.stderr).toContain("SESSION_NOT_FOUND");
    expect(again.status).toBe(125);
  });

  test("twice at once ends it once", async () => {
    const world = sessionWorld();
    const id = startIdle(world);
    const outcomes = await Promise.all(
      [world.spawn(["stop", id]), world.spawn(["stop", id])].map(
        (child) => new Promise<number | null>((resolve) => child.once("close", resolve)),
      ),
    );
    expect(outcomes).toContain(0);
    expect(outcomes.every((status) => status === 0 || status === 125)).toBe(true);
    await expectNothingLeft(world);
  });

  test("prints JSON", async () => {
    const world = sessionWorld();
    const id = startIdle(world);
    expect(JSON.parse((await world.podbot(["stop", "--json", id])).stdout)).toEqual([
      { id, stopped: true, warnings: [] },
    ]);
  });

  test("tells what a session was warned of while its owner was not there, before that is gone", async () => {
    const world = sessionWorld();
    const ids = [
      startDetached(world, ["git", "init", "-q", "lib"]),
      startDetached(world, ["git", "init", "-q", "own"]),
    ];
    await eventually(async () => expect((await world.podbot(["ps"])).stdout.match(/ended \(0\)/g)).toHaveLength(2));
    expect((await world.podbot(["ps"])).stdout).toMatch(new RegExp(`\\n {2}\\d warnings?: \`podbot logs ${ids[0]}\``));
    const warned = expect.arrayContaining([expect.stringContaining("lib became a git repository during the run")]);
    expect(JSON.parse((await world.podbot(["ps", "--json"])).stdout)[0]).toMatchObject({
      id: ids[0],
      warnings: warned,
    });
    const [first] = JSON.parse((await world.podbot(["stop", "--json", ids[0] as string])).stdout);
    expect(first).toEqual({ id: ids[0], stopped: true, warnings: warned });
    const { stdout, stderr } = await world.podbot(["stop", "--ended"]);
    expect(stdout).toBe(`${ids[1]}\n`);
    expect(stderr).toContain(`podbot: warning: session ${ids[1]}: ${world.project}/own became a git repository`);
  });

  test("tells it of one that still runs, too", async () => {
    const world = sessionWorld();
    const id = startDetached(world, ["sh", "-c", "git init -q lib; echo > ready; sleep 300"]);
    await eventually(() => expect(world.outside("cat ready").status).toBe(0));
    const { stderr } = await world.podbot(["stop", "--all"]);
    expect(stderr).toContain(`session ${id}: ${world.project}/lib became a git repository`);
  });

  test("stops nothing where a name is wrong or the words make no sense", async () => {
    const world = sessionWorld();
    const id = startIdle(world);
    expect(await world.podbot(["stop"])).toMatchObject({ status: 2 });
    expect(await world.podbot(["stop", "--all", id])).toMatchObject({ status: 2 });
    expect(await world.podbot(["stop", "--time", "soon", id])).toMatchObject({ status: 2 });
    expect(await world.podbot(["stop", id, "zzzzzzzzzz"])).toMatchObject({ status: 125 });
    expect(sessionsOf(world)).toEqual([id]);
    expect((await world.podbot(["exec", id, "echo", "alive"])).stdout).toBe("alive\n");
  });
});
