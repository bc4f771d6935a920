import { describe, expect, test } from "vitest";
import { eventually } from "../../eventually.ts";
import { openTerminal } from "../../terminal.ts";
import { expectNothingLeft, processesOf, sessionWorld } from "./remains.ts";
import { ways } from "./ways.ts";

const whichAreTerminals = `sh -c 'for n in 0 1 2; do test -t $n && printf "$n "; done; echo are terminals; tty'`;

describe.each(ways)("podbot $name", ({ name, prepare }) => {
  test("has a terminal inside only where both input and output are one", async () => {
    const world = sessionWorld();
    const screen = openTerminal(world);
    const before = prepare(world);
    screen.type(`${before} ${whichAreTerminals}`);
    await screen.sees(/^0 1 2 are terminals\n\/dev\/pts\/\d+$/m);
    for (const [at, line] of [
      `echo | ${before} ${whichAreTerminals}`,
      `${before} ${whichAreTerminals} </dev/null`,
      `${before} ${whichAreTerminals} | cat`,
      `${before.replace(/(run|exec) /, "$1 --no-tty ")} ${whichAreTerminals} </dev/tty`,
    ].entries()) {
      screen.type(`clear; ${line}; echo over $((${at} + 10))`);
      await screen.sees(new RegExp(`^over ${at + 10}$`, "m"));
      expect(screen.screen(), line).toMatch(/^are terminals\nnot a tty$/m);
    }
  });

  test("ends when nobody reads its output any more, and so does the command", async () => {
    const world = sessionWorld();
    const screen = openTerminal(world);
    screen.type(`${prepare(world)} yes flows | head -1; echo statuses=\${PIPESTATUS[*]}`);
    await screen.sees(/^flows\nstatuses=141 0$/m);
    await eventually(() => expect(processesOf(world).join("\n")).not.toContain(" yes "));
    if (name === "run") await expectNothingLeft(world);
  });

  test("is interrupted by Ctrl-C on pipes as well", async () => {
    const world = sessionWorld();
    const screen = openTerminal(world);
    screen.type(`${prepare(world)} sh -c 'echo go; exec sleep 300' | cat; echo statuses=\${PIPESTATUS[*]}`);
    await screen.sees(/^go$/m);
    screen.press("C-c");
    await screen.sees(/\$ $/m);
    await eventually(() => expect(processesOf(world).join("\n")).not.toContain(" sleep 300"));
    if (name === "run") await expectNothingLeft(world);
  });

  test.each(["cat", "vi -u NONE", `sh -c 'trap "" HUP; while :; do echo on; sleep 0.1; done'`])(
    "ends when its window is closed, and %s with it",
    async (command) => {
      const world = sessionWorld();
      world.file("home/.config/podbot/config.toml", "[sandbox]\ngrace_seconds = 1\n");
      const screen = openTerminal(world);
      screen.type(`${prepare(world)} sh -c 'echo go; exec ${command.replaceAll("'", `'\\''`)}'`);
      await screen.sees(command.startsWith("vi") ? /^~ *\n~/m : /^go$/m);
      screen.hangUp();
      await eventually(() => expect(processesOf(world).join("\n")).not.toMatch(/ (cat|vi|sh -c trap) |\/podbot exec/));
      if (name === "run") await expectNothingLeft(world);
    },
  );
});
