import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { eventually } from "../../eventually.ts";
import { openTerminal, type Terminal } from "../../terminal.ts";
import type { World } from "../../world.ts";
import { expectNothingLeft, processesOf, sessionWorld } from "./remains.ts";
import { ways } from "./ways.ts";

/** The podbot on the terminal. */
function foreground(world: World): number {
  const found = processesOf(world).find((line) => /\/podbot (run --agent|exec)/.test(line));
  return Number.parseInt(found ?? "", 10);
}

describe.each(ways)("as a job of the shell, podbot $name", ({ name, prepare }) => {
  test("stops with Ctrl-Z and goes on with fg, as often as one likes", async () => {
    const world = sessionWorld();
    const screen = openTerminal(world);
    screen.type(`${prepare(world)} sh -c 'echo go; cat; echo end'`);
    await screen.sees(/^go$/m);
    for (const round of ["one", "two", "three"]) {
      screen.press("C-z");
      await screen.sees(/Stopped.*\n\$ $/);
      screen.type(`echo status=$? ${round}`);
      await screen.sees(new RegExp(`^status=148 ${round}$`, "m"));
      screen.type("clear; fg");
      await screen.sees(/^.*podbot.* sh -c .*/);
      await screen.isRaw();
      screen.type(`typed ${round}`);
      await screen.sees(new RegExp(`^typed ${round}\ntyped ${round}$`, "m"));
      screen.press("Enter");
    }
    screen.press("C-d");
    await screen.sees(/^end\n\$ $/m);
  });

  test("is stopped again by bg, without harm, and can be had back", async () => {
    const world = sessionWorld();
    const screen = openTerminal(world);
    screen.type(`${prepare(world)} sh -c 'echo go; cat; echo end'`);
    await screen.sees(/^go$/m);
    screen.press("C-z");
    await screen.sees(/Stopped.*\n\$ $/);
    screen.type("clear; bg");
    await screen.sees(/^\[1\].*&$/m);
    screen.type("clear; echo typed $((6 * 7)) once");
    await screen.sees(/^typed 42 once$/m);
    expect(screen.screen().match(/typed/g)).toHaveLength(1);
    await knowsStopped(screen);
    screen.type("clear; fg");
    await screen.sees(/^.*podbot.* sh -c .*/);
    await screen.isRaw();
    screen.type("back");
    await screen.sees(/^back\nback$/m);
    screen.press("C-d");
    await screen.sees(/^end\n\$ $/m);
  });

  test.each(["stopped", "stopped again by bg"])("is ended by kill where it was %s", async (how) => {
    const world = sessionWorld();
    const screen = openTerminal(world);
    screen.type(`${prepare(world)} sh -c 'echo go; cat'`);
    await screen.sees(/^go$/m);
    screen.press("C-z");
    await screen.sees(/Stopped.*\n\$ $/);
    if (how !== "stopped") {
      screen.type("clear; bg");
      await screen.sees(/^\[1\].*&$/m);
      await knowsStopped(screen);
    }
    screen.type("clear; kill %1; while kill -0 %1 2>/dev/null; do sleep 0.1; done");
    await screen.sees(/^\[1\].*Exit 143/m);
    await eventually(() => expect(processesOf(world).join("\n")).not.toMatch(/ cat $/m));
    if (name === "run") await expectNothingLeft(world);
    screen.type("clear; echo typed $((6 * 7)) once");
    await screen.sees(/^typed 42 once$/m);
  });

  test("lets an editor stop: the shell's screen comes back, and the editor's with fg", async () => {
    const world = sessionWorld();
    world.file("home/project/poem", "first\nsecond\n");
    const screen = openTerminal(world);
    const before = prepare(world);
    screen.type("clear; echo above");
    await screen.sees(/^above$/m);
    screen.type(`${before} vi -u NONE poem`);
    for (const round of [1, 2, 3]) {
      await screen.sees(/^first\n(.*\n)*~/m);
      screen.press("C-z");
      await screen.sees(/^above\n(.*\n)*.*Stopped/m);
      screen.type(`echo round $((${round} + 10))`);
      await screen.sees(new RegExp(`^round ${round + 10}$`, "m"));
      screen.resize(120 - round, 40);
      screen.type("fg");
    }
    await screen.sees(/^first\n(.*\n)*~/m);
    screen.write("Gonew");
    screen.press("Escape");
    screen.type(":wq");
    await screen.sees(/^above$/m);
    await screen.sees(/^\$ $/m);
    expect(readFileSync(join(world.project, "poem"), "utf8")).toBe("first\nsecond\nnew\n");
  });

  test("learns of a size that has changed while it was stopped", async () => {
    const world = sessionWorld();
    const screen = openTerminal(world);
    screen.type(`${prepare(world)} bash -c 'trap "stty size" WINCH; stty size; while :; do sleep 0.1; done'`);
    await screen.sees(/^40 120$/m);
    screen.press("C-z");
    await screen.sees(/Stopped/);
    screen.resize(100, 30);
    screen.type("fg");
    await screen.sees(/^30 100$/m);
    screen.press("C-c");
  });

  test("has the terminal raw again, whoever stopped it", async () => {
    const world = sessionWorld();
    const screen = openTerminal(world);
    screen.type(`${prepare(world)} sh -c 'echo go; cat; echo end'`);
    await screen.sees(/^go$/m);
    process.kill(foreground(world), "SIGSTOP");
    await screen.sees(/Stopped.*\n\$ $/);
    screen.type("clear; fg");
    await screen.sees(/^.*podbot.* sh -c .*/);
    await screen.isRaw();
    screen.type("again");
    await screen.sees(/^again\nagain$/m);
    screen.press("C-c");
    await screen.sees(/\^C\n?\$ $/m);
    screen.type("echo status=$?");
    await screen.sees(/^status=130$/m);
  });

  test("goes on at once where no shell could let it go on", async () => {
    const world = sessionWorld();
    const screen = openTerminal(world, `${prepare(world)} sh -c 'echo go; cat; echo end; sleep 300'`);
    await screen.sees(/^go$/m);
    screen.press("C-z");
    await screen.sees(/\^Z/);
    screen.type("goes on");
    await screen.sees(/goes on\ngoes on$/m);
    screen.press("C-d");
    await screen.sees(/^end$/m);
  });
});

describe("a session whose keeper is stopped", () => {
  test("is shown as such, and can be stopped for good from elsewhere", async () => {
    const world = sessionWorld();
    const screen = openTerminal(world);
    screen.type(`podbot run --agent custom -- sh -c 'echo go; cat'`);
    await screen.sees(/^go$/m);
    screen.press("C-z");
    await screen.sees(/Stopped.*\n\$ $/);
    const listed = await world.podbot(["ps", "--json"]);
    const [session] = JSON.parse(listed.stdout);
    expect(session.state).toBe("suspended");
    const refused = await world.podbot(["exec", session.id, "--", "true"]);
    expect(refused.stderr).toContain("SESSION_UNREACHABLE");
    expect(refused.status).toBe(125);
    expect(await world.podbot(["stop", session.id])).toEqual({ status: 0, stdout: `${session.id}\n`, stderr: "" });
    await expectNothingLeft(world);
    screen.type("clear; echo typed $((6 * 7)) once");
    await screen.sees(/^typed 42 once$/m);
  });
});

/** Waits until the shell has noticed. */
async function knowsStopped(screen: Terminal): Promise<void> {
  await eventually(async () => {
    screen.type("clear; jobs");
    await screen.sees(/\[1\].*\n\$ $/);
    expect(screen.screen()).toMatch(/Stopped/);
  });
}
