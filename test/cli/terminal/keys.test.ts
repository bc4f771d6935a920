import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openTerminal, type Terminal } from "../../terminal.ts";
import type { World } from "../../world.ts";
import { sessionWorld } from "./remains.ts";
import { ways } from "./ways.ts";

/** What a terminal shows after the same keys, without the command's own line. */
async function screenAfter(world: World, command: string, drive: (screen: Terminal) => Promise<void>): Promise<string> {
  const screen = openTerminal(world);
  await screen.sees(/^\$ $/m);
  screen.type(`clear; ${command}`);
  await drive(screen);
  return screen.screen().trimEnd();
}

describe.each(ways)("on a terminal, by podbot $name,", ({ prepare }) => {
  test("every key reaches a raw program, as locally", async () => {
    const world = sessionWorld();
    world.file("home/project/keys", "stty raw -echo; printf 'go\\r\\n'; dd bs=1 count=31 2>/dev/null | od -An -tx1\n");
    const drive = async (screen: Terminal) => {
      await screen.sees(/^go$/m);
      screen.press("C-c", "C-d", "C-\\", "C-z", "C-v", "C-s", "C-q", "C-a", "C-u", "C-w", "C-j", "Enter", "Tab");
      screen.press("Up", "Escape", "F5", "BSpace", "Space");
      screen.write("ä€ 0");
      await screen.sees(/\$ $/m);
    };
    const inside = await screenAfter(world, `${prepare(world)} sh keys; stty sane`, drive);
    expect(inside).toMatch(/03 04 1c 1a 16 13 11 01 15 17 0a 0d 09/);
    expect(inside).toMatch(/c3 a4 e2/);
    expect(inside).toBe(await screenAfter(world, "sh keys; stty sane", drive));
  });

  test("lines are edited and echoed once, as locally", async () => {
    const world = sessionWorld();
    const drive = async (screen: Terminal) => {
      await screen.sees(/^go$/m);
      screen.type("once");
      await screen.sees(/^once\nonce$/m);
      screen.write("wörng");
      screen.press("BSpace", "BSpace", "BSpace", "BSpace", "BSpace");
      screen.type("right");
      await screen.sees(/^right\nright$/m);
      screen.write("gone");
      screen.press("C-u");
      screen.type("stays");
      await screen.sees(/^stays\nstays$/m);
      screen.write("a");
      screen.press("C-v", "C-c");
      screen.type("b");
      await screen.sees(/^a\^Cb\n.*b$/m);
      screen.press("C-d");
      await screen.sees(/^end$/m);
      await screen.sees(/^\$ $/m);
    };
    const inside = await screenAfter(world, `${prepare(world)} sh -c 'echo go; cat | cat -v; echo end'`, drive);
    expect(inside).toBe(await screenAfter(world, "sh -c 'echo go; cat | cat -v; echo end'", drive));
  });

  test("Ctrl-C, Ctrl-\\ and Ctrl-D act inside, and the status tells", async () => {
    const world = sessionWorld();
    const screen = openTerminal(world);
    const before = prepare(world);
    screen.type(`${before} bash -c 'trap "echo caught; exit 9" INT; echo g1; while :; do sleep 0.1; done'`);
    await screen.sees(/^g1$/m);
    screen.press("C-c");
    await screen.sees(/caught$/m);
    screen.type("echo status=$?");
    await screen.sees(/^status=9$/m);
    screen.type(`${before} sh -c 'echo g2; exec sleep 300'`);
    await screen.sees(/^g2$/m);
    screen.press("C-c");
    await screen.sees(/\^C\n?\$ $/m);
    screen.type("echo status=$?");
    await screen.sees(/^status=130$/m);
    screen.type(`${before} sh -c 'ulimit -c 0; echo g3; exec sleep 300'`);
    await screen.sees(/^g3$/m);
    screen.press("C-\\");
    await screen.sees(/\^\\\n?\$ $/m);
    screen.type("echo status=$?");
    await screen.sees(/^status=131$/m);
    screen.type(`${before} sh -c 'echo g4; cat; exit 7'`);
    await screen.sees(/^g4$/m);
    screen.press("C-d");
    await screen.sees(/^g4\n\$ $/m);
    screen.type("echo status=$?");
    await screen.sees(/^status=7$/m);
    screen.type(`${before} true; echo status=$?`);
    await screen.sees(/^status=0$/m);
  });

  test("the size is the terminal's, and changes with it", async () => {
    const world = sessionWorld();
    const screen = openTerminal(world);
    screen.type(`${prepare(world)} bash -c 'trap "stty size" WINCH; stty size; while :; do sleep 0.1; done'`);
    await screen.sees(/^40 120$/m);
    screen.resize(100, 30);
    await screen.sees(/^30 100$/m);
    screen.resize(90, 35);
    await screen.sees(/^35 90$/m);
    screen.press("C-c");
  });

  test("a size that the terminal does not say is no reason to fail", async () => {
    const world = sessionWorld();
    const screen = openTerminal(world);
    screen.type(`stty rows 0 cols 0; ${prepare(world)} sh -c 'stty size; echo fine'`);
    await screen.sees(/^24 80\s+fine$/m);
  });

  test("what draws has the terminal for itself: a line feed is not a new line", async () => {
    const world = sessionWorld();
    const drive = async (screen: Terminal) => {
      await screen.sees(/end$/m);
    };
    const command = `sh -c 'stty raw; printf "one\\ntwo\\nend"; sleep 1; stty sane; echo'`;
    const inside = await screenAfter(world, `${prepare(world)} ${command}`, drive);
    expect(inside).toContain("one\n   two\n      end");
    expect(await screenAfter(world, command, drive)).toContain("one\n   two\n      end");
  });

  test("an editor opens, edits a file of the workspace, and gives the screen back", async () => {
    const world = sessionWorld();
    world.file("home/project/poem", "first\nsecond\nthird\n");
    const screen = openTerminal(world);
    const before = prepare(world);
    screen.type("clear; echo above");
    await screen.sees(/^above$/m);
    screen.type(`${before} vi -u NONE poem`);
    await screen.sees(/^first\nsecond\nthird\n~/m);
    expect(screen.screen()).not.toContain("above");
    screen.press("Down");
    screen.write("A line");
    await screen.sees(/^second line$/m);
    screen.press("Escape");
    screen.type(":wq");
    await screen.sees(/^above$/m);
    await screen.sees(/^\$ $/m);
    expect(readFileSync(join(world.project, "poem"), "utf8")).toBe("first\nsecond line\nthird\n");
    expect(screen.screen()).not.toContain("~\n");
  });

  test("a shell inside controls jobs of its own", async () => {
    const world = sessionWorld();
    const screen = openTerminal(world);
    screen.type(`${prepare(world)} env PS1='inside> ' bash --norc --noprofile -i`);
    await screen.sees(/inside> $/m);
    expect(screen.screen()).not.toMatch(/job control|ioctl/);
    screen.type("sh -c 'echo go; cat'");
    await screen.sees(/^go$/m);
    screen.type("running");
    await screen.sees(/^running\nrunning$/m);
    screen.press("C-z");
    await screen.sees(/Stopped.*cat'\ninside> $/m);
    screen.type("fg");
    await screen.sees(/^sh -c 'echo go; cat'$/m);
    screen.press("C-c");
    await screen.sees(/\^C\n+inside> $/m);
    screen.type("echo $((40 + 2)) $TERM");
    await screen.sees(/^42 (screen|tmux)/m);
    screen.type("exit 5");
    await screen.sees(/^\$ $/m);
    screen.type("echo status=$?");
    await screen.sees(/^status=5$/m);
  });
});

describe("podbot exec", () => {
  test("tells the program which terminal it is on now", async () => {
    const world = sessionWorld();
    const screen = openTerminal(world);
    const before = ways[1]?.prepare(world);
    screen.type(`TERM=vt220 COLORTERM=truecolor ${before} sh -c 'echo $TERM $COLORTERM'`);
    await screen.sees(/^vt220 truecolor$/m);
    screen.type(`podbot ps --quiet | wc -l`);
    await screen.sees(/^1$/m);
  });
});
