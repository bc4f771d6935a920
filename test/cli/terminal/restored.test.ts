import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { eventually } from "../../eventually.ts";
import { openTerminal, type Terminal } from "../../terminal.ts";
import type { World } from "../../world.ts";
import { expectNothingLeft, processesOf, sessionsOf, sessionWorld } from "./remains.ts";
import { ways } from "./ways.ts";

/** Runs a line in a terminal; afterwards its settings are what they were before, and keys are echoed once. */
async function expectRestored(
  world: World,
  line: string,
  status: RegExp,
  meanwhile: (screen: Terminal) => Promise<void> = async () => {},
): Promise<Terminal> {
  const screen = openTerminal(world);
  screen.type("stty -a >before; clear; echo above");
  await screen.sees(/^above\n\$ $/m);
  screen.type(line);
  await meanwhile(screen);
  await screen.sees(/\n\$ $/);
  screen.type("echo status=$?; stty -a >after");
  await screen.sees(status);
  screen.type("echo typed $((6 * 7)) once");
  await screen.sees(/^typed 42 once$/m);
  const settings = (name: string) => readFileSync(join(world.project, name), "utf8");
  expect(settings("after")).toBe(settings("before"));
  expect(screen.screen()).toMatch(/^above$/m);
  return screen;
}

function pidOf(world: World, pattern: RegExp): number {
  const found = processesOf(world).find((line) => pattern.test(line));
  return Number.parseInt(found ?? "", 10);
}

describe.each(ways)("after podbot $name the terminal is as before,", ({ name, prepare }) => {
  test("when the command ends", async () => {
    const world = sessionWorld();
    await expectRestored(world, `${prepare(world)} sh -c 'stty -echo raw; exit 7'`, /^status=7$/m);
    if (name === "run") await expectNothingLeft(world);
  });

  test("when a signal ends the command", async () => {
    const world = sessionWorld();
    await expectRestored(world, `${prepare(world)} sh -c 'kill -9 $$'`, /^status=137$/m);
    if (name === "run") await expectNothingLeft(world);
  });

  test.each(["/no/such/program", "/etc"])("when %s cannot be started", async (command) => {
    const world = sessionWorld();
    const status = command === "/etc" ? 126 : 127;
    const screen = await expectRestored(world, `${prepare(world)} ${command}`, new RegExp(`^status=${status}$`, "m"));
    expect(screen.screen()).toMatch(/COMMAND_NOT_(FOUND|EXECUTABLE)/);
    if (name === "run") await expectNothingLeft(world);
  });

  test("when podbot is asked to end", async () => {
    const world = sessionWorld();
    await expectRestored(world, `${prepare(world)} sh -c 'echo go; exec cat'`, /^status=143$/m, async (screen) => {
      await screen.sees(/^go$/m);
      process.kill(pidOf(world, /\/podbot (run --agent|exec)/), "SIGTERM");
      await screen.sees(/^go\n\$ $/m);
    });
    if (name === "run") await expectNothingLeft(world);
    else await eventually(() => expect(processesOf(world).join("\n")).not.toMatch(/ cat $/m));
  });

  test("when podbot is asked twice to end a command that does not want to", async () => {
    const world = sessionWorld();
    const command = `sh -c 'trap "" TERM; echo go; while :; do sleep 1; done'`;
    await expectRestored(world, `${prepare(world)} ${command}`, /^status=137$/m, async (screen) => {
      await screen.sees(/^go$/m);
      const pid = pidOf(world, /\/podbot (run --agent|exec)/);
      process.kill(pid, "SIGTERM");
      // Two signals at once would be one.
      await new Promise((resolve) => setTimeout(resolve, 300));
      process.kill(pid, "SIGTERM");
      await screen.sees(/^go\n\$ $/m);
    });
  });

  test("when the box is killed", async () => {
    const world = sessionWorld();
    const screen = await expectRestored(world, `${prepare(world)} vi -u NONE`, /^status=\d+$/m, async (screen) => {
      await screen.sees(/^~ *\n~ *\n~/m);
      process.kill(pidOf(world, /^\d+ bwrap /), "SIGKILL");
      await screen.sees(/^above\n(.*\n)*\$ $/m);
    });
    expect(screen.screen()).toContain("BOX_LOST");
    expect(screen.screen()).toMatch(/^status=125$/m);
    if (name === "run") await expectNothingLeft(world);
  });

  test("when the session is stopped from elsewhere", async () => {
    const world = sessionWorld();
    const line = `${prepare(world)} sh -c 'trap "" HUP; echo go; exec cat'`;
    await expectRestored(world, line, /^status=\d+$/m, async (screen) => {
      await screen.sees(/^go$/m);
      const [id] = sessionsOf(world);
      expect(await world.podbot(["stop", id as string])).toEqual({ status: 0, stdout: `${id}\n`, stderr: "" });
      await screen.sees(/^go\n(.*\n)*\$ $/m);
    });
    await expectNothingLeft(world);
  });

  test("when what drew on it is killed", async () => {
    const world = sessionWorld();
    const command = `sh -c 'printf "\\033[?1049h\\033[?25l\\033[?1000;1006h\\033[Hdrawn"; until [ -e go ]; do sleep 0.05; done; kill -9 $$'`;
    await expectRestored(world, `${prepare(world)} ${command}`, /^status=137$/m, async (screen) => {
      await screen.sees(/^drawn$/m);
      writeFileSync(join(world.project, "go"), "");
      await screen.sees(/^above\n(.*\n)*\$ $/m);
      expect(screen.modes()).toBe("cursor=1 mouse=0");
    });
  });

  test("and the cursor stays where it is when what was interrupted has not drawn", async () => {
    const world = sessionWorld();
    const screen = openTerminal(world);
    const before = prepare(world);
    // A program that has drawn before leaves a place for the cursor to return to.
    screen.type("clear; printf '\\033[?1049h\\033[?1049l'; echo one; echo two");
    await screen.sees(/^two\n\$ $/m);
    screen.type(`${before} sh -c 'echo go; exec sleep 300'`);
    await screen.sees(/^go$/m);
    screen.press("C-c");
    await screen.sees(/^one\ntwo\n.*\ngo\n\^C\n?\$ $/m);
  });
});
