import { describe, expect, test } from "vitest";
import { openTerminal } from "../terminal.ts";
import { newWorld, program } from "../world.ts";

const podbot = `${process.execPath} ${program}`;

describe("in a terminal", () => {
  test("Ctrl-C interrupts what runs inside, not the sandbox", async () => {
    const world = newWorld();
    const screen = openTerminal(world);
    screen.type(`${podbot} sandbox -- python3 -q`);
    await screen.sees(/>>> $/m);
    screen.type("import time; print('as' + 'leep'); time.sleep(300)");
    await screen.sees(/^asleep$/m);
    screen.press("C-c");
    await screen.sees(/KeyboardInterrupt/);
    screen.type("print('still', 'here')");
    await screen.sees(/^still here$/m);
    screen.press("C-d");
    screen.type("echo status=$?");
    await screen.sees(/^status=0$/m);
  });

  test("Ctrl-C ends a command that does not handle it, with 130", async () => {
    const world = newWorld();
    const screen = openTerminal(world);
    screen.type(`${podbot} sandbox -- sh -c 'echo go; sleep 300'`);
    await screen.sees(/^go$/m);
    screen.press("C-c");
    screen.type("echo status=$?");
    await screen.sees(/^status=130$/m);
  });

  test("Ctrl-Z stops everything and fg goes on", async () => {
    const world = newWorld();
    const screen = openTerminal(world);
    screen.type(`${podbot} sandbox -- sh -c 'echo go; cat; echo end'`);
    await screen.sees(/^go$/m);
    screen.press("C-z");
    await screen.sees(/Stopped/);
    screen.type("echo between");
    await screen.sees(/^between$/m);
    screen.type("fg");
    // bash names the job again when it has handed it the terminal.
    await screen.sees(/^\$ fg\n.*sandbox -- sh/m);
    screen.type("echoed");
    await screen.sees(/^echoed$/m);
    screen.press("C-d");
    await screen.sees(/^end$/m);
  });

  test("a shell inside has job control of its own", async () => {
    const world = newWorld();
    const screen = openTerminal(world);
    screen.type(`PS1='inside> ' ${podbot} sandbox --env PS1 -- bash --norc --noprofile -i`);
    await screen.sees(/inside> $/m);
    expect(screen.screen()).not.toContain("no job control");
    // Until the shell has handed over the terminal, Enter is none to cat.
    screen.type("sh -c 'echo go; exec cat'");
    await screen.sees(/^go$/m);
    screen.type("running");
    await screen.sees(/^running\nrunning$/m);
    screen.press("C-z");
    await screen.sees(/Stopped/);
    screen.type("kill -9 %1; wait %1; jobs; echo $((40 + 2)) done");
    await screen.sees(/^42 done$/m);
    screen.type("exit 5");
    await screen.sees(/exit\n\$ $/m);
    screen.type("echo status=$?");
    await screen.sees(/^status=5$/m);
  });

  test("nothing inside can type into it", async () => {
    const world = newWorld();
    const inject = world.file(
      "home/project/inject.py",
      [
        "import fcntl",
        "try:",
        "    for byte in b'echo inj\"\"ected\\n': fcntl.ioctl(0, 0x5412, bytes([byte]))",
        "    print('typed')",
        "except OSError as error:",
        "    print('refused', type(error).__name__)",
      ].join("\n"),
    );
    const screen = openTerminal(world);
    screen.type(`${podbot} sandbox -- python3 ${inject}; echo over`);
    await screen.sees(/^over$/m);
    expect(screen.screen()).toContain("refused PermissionError");
    expect(screen.screen()).not.toMatch(/^injected$/m);
    if (process.getuid?.() === 0) {
      screen.type(`clear; python3 ${inject}`);
      await screen.sees(/^injected$/m);
    }
  });

  test("the size is the terminal's own", async () => {
    const world = newWorld();
    const screen = openTerminal(world);
    screen.type(`${podbot} sandbox -- stty size`);
    await screen.sees(/^40 120$/m);
  });
});
