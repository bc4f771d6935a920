import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { eventually } from "../eventually.ts";
import { sessionWorld, startDetached, startIdle } from "./terminal/remains.ts";

// What would act on a terminal, or hide something from its reader: escape sequences, C1, line breaks, bidi controls.
const hostile = "a\u001b]0;title\u0007\u001b[2J\u009b31m\rb\nc\td\u202egnp\u2066x\u2069\u200f\u007fe";
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this is about.
const acting = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/;

describe("podbot ps", () => {
  test("says that there is nothing", async () => {
    const world = sessionWorld();
    expect(await world.podbot(["ps"])).toEqual({
      status: 0,
      stdout: "No sessions. `podbot run` starts one.\n",
      stderr: "",
    });
    expect(await world.podbot(["ps", "--quiet"])).toEqual({ status: 0, stdout: "", stderr: "" });
    expect(await world.podbot(["ps", "--json"])).toEqual({ status: 0, stdout: "[]\n", stderr: "" });
  });

  test("lists what runs and what has ended, the oldest first", async () => {
    const world = sessionWorld();
    const first = startDetached(world, ["sh", "-c", "exit 3"]);
    const second = startIdle(world);
    await eventually(async () => expect((await world.podbot(["ps"])).stdout).toContain("ended (3)"));
    const { stdout } = await world.podbot(["ps"]);
    const [head, ...rows] = stdout.trimEnd().split("\n");
    expect(head).toMatch(/^ID {2,}STATE {2,}AGE {2,}AGENT {2,}DIRECTORY {2,}COMMAND$/);
    expect(rows[0]).toMatch(new RegExp(`^${first}  ended \\(3\\)  \\d+s +custom  ${world.project}  sh -c exit 3$`));
    expect(rows[1]).toMatch(new RegExp(`^${second}  running    \\d+s +custom  ${world.project}  sh -c while`));
    expect((await world.podbot(["ps", "-q"])).stdout).toBe(`${first}\n${second}\n`);
    const listed = JSON.parse((await world.podbot(["ps", "--json"])).stdout);
    expect(listed.map(({ id, state, exit }: Record<string, unknown>) => ({ id, state, exit }))).toEqual([
      { id: first, state: "ended", exit: { code: 3, killed: false } },
      { id: second, state: "running", exit: null },
    ]);
  });

  test("shows command lines and directories without doing what they say", async () => {
    const world = sessionWorld();
    const cwd = join(world.home, `evil ${hostile}`);
    mkdirSync(cwd);
    const id = startDetached(world, ["sh", "-c", "sleep 300", hostile], "-C", cwd);
    const table = await world.podbot(["ps"]);
    expect(table.stdout.trimEnd().split("\n")).toHaveLength(2);
    expect(table.stdout).not.toMatch(acting);
    expect(table.stdout).toContain("\\x1b[2J");
    expect(table.stdout).toContain("\\u202egnp");
    const json = await world.podbot(["ps", "--json"]);
    expect(json.stdout).not.toMatch(acting);
    expect(JSON.parse(json.stdout)[0]).toMatchObject({ id, cwd, command: ["sh", "-c", "sleep 300", hostile] });
  });

  test("takes no words", async () => {
    const world = sessionWorld();
    expect(await world.podbot(["ps", "what"])).toMatchObject({ status: 2 });
  });
});
