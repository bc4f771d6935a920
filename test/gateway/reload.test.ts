import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sessionWorld } from "../cli/terminal/remains.ts";
import { getting } from "./client-programs.ts";
import { allow, Town } from "./stage.ts";

const town = new Town();
beforeAll(() => town.http("plain.example.com"));
afterAll(() => town[Symbol.asyncDispose]());

test("a session goes by the rules of now when it is told to; where they are wrong, the old ones hold, and it is said", async () => {
  const world = sessionWorld();
  world.file(join(world.project, "get.py"), getting);
  allow(world, town, {});
  const started = await world.podbot(["run", "--detach", "--quiet", "--agent", "custom", "--", "sleep", "60"]);
  expect(started).toMatchObject({ status: 0 });
  const id = started.stdout.trim();
  const ask = async () => {
    const { stdout } = await world.podbot([
      "exec",
      "--no-tty",
      id,
      "--",
      "python3",
      "get.py",
      "http://plain.example.com/x",
    ]);
    return stdout.includes("NETWORK_DENIED") ? "refused" : stdout.includes('"url":"/x"') ? "reached" : stdout;
  };
  const reload = () => world.podbot(["policy", "reload", id]);
  try {
    expect(await ask()).toBe("refused");
    allow(world, town, { network: { domains: ["plain.example.com"] } });
    expect(await ask()).toBe("refused");
    expect(await reload()).toEqual({ status: 0, stdout: `${id}\n`, stderr: "" });
    expect(await ask()).toBe("reached");

    allow(world, town, { network: { domains: ["plain..example.com"] } });
    expect(await reload()).toMatchObject({ status: 2, stderr: expect.stringContaining("NETWORK_RULE_INVALID") });
    expect(await ask()).toBe("reached");
    allow(world, town, { network: { domains: ["other.example.com:5432"] } });
    expect((await reload()).stderr).toMatch(/port 5432 has no door.*The old rules hold/s);
    expect(await ask()).toBe("reached");
    allow(world, town, { network: { mode: "none" } });
    expect((await reload()).stderr).toContain("a network mode cannot be changed");
    expect(await ask()).toBe("reached");

    allow(world, town, {});
    expect((await reload()).status).toBe(0);
    expect(await ask()).toBe("refused");
    expect(await world.podbot(["policy", "reload"])).toMatchObject({ status: 2 });
    expect(await world.podbot(["policy", "reload", "zzzz"])).toMatchObject({ status: 125 });
  } finally {
    await world.podbot(["stop", "--all", "--time", "1"]);
  }
});
