import { spawnSync } from "node:child_process";
import { afterEach, describe, expect, test } from "vitest";
import { newWorld, program, type World } from "../world.ts";

/** A real terminal, driven as a person would. */
class Terminal {
  readonly #socket = `podbot-test-${process.pid}-${Math.random().toString(36).slice(2)}`;

  constructor(world: World) {
    const shell = `cd ${world.project} && export HOME=${world.home} PS1='$ ' && exec bash --norc --noprofile`;
    this.#tmux("-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "40", shell);
  }

  type(text: string): void {
    this.#tmux("send-keys", "-l", text);
    this.press("Enter");
  }

  press(...keys: string[]): void {
    this.#tmux("send-keys", ...keys);
  }

  screen(): string {
    return this.#tmux("capture-pane", "-p", "-J");
  }

  async sees(pattern: RegExp): Promise<void> {
    for (let tries = 0; tries < 300; tries++) {
      if (pattern.test(this.screen())) return;
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
    throw new Error(`the screen never showed ${pattern}:\n${this.screen()}`);
  }

  close(): void {
    spawnSync("tmux", ["-L", this.#socket, "kill-server"]);
  }

  #tmux(...words: string[]): string {
    const { status, stdout, stderr } = spawnSync("tmux", ["-L", this.#socket, ...words], {
      encoding: "utf8",
      env: { PATH: process.env["PATH"] ?? "", TERM: "xterm", LANG: "C.UTF-8", HOME: "/nonexistent" },
    });
    if (status !== 0) throw new Error(`tmux ${words.join(" ")}: ${stderr}`);
    return stdout;
  }
}

const open: Terminal[] = [];

function terminal(world: World): Terminal {
  const made = new Terminal(world);
  open.push(made);
  return made;
}

afterEach(() => {
  for (const made of open.splice(0)) made.close();
});

const podbot = `${process.execPath} ${program}`;

describe("in a terminal", () => {
  test("Ctrl-C interrupts what runs inside, not the sandbox", async () => {
    const world = newWorld();
    const screen = terminal(world);
    screen.type(`${podbot} sandbox -- python3 -q`);
    await screen.sees(/>>> $/m);
    screen.type("import time; time.sleep(300)");
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
    const screen = terminal(world);
    screen.type(`${podbot} sandbox -- sh -c 'echo go; sleep 300'`);
    await screen.sees(/^go$/m);
    screen.press("C-c");
    screen.type("echo status=$?");
    await screen.sees(/^status=130$/m);
  });

  test("Ctrl-Z stops everything and fg goes on", async () => {
    const world = newWorld();
    const screen = terminal(world);
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
    const screen = terminal(world);
    screen.type(`PS1='inside> ' ${podbot} sandbox --env PS1 -- bash --norc --noprofile -i`);
    await screen.sees(/inside> $/m);
    expect(screen.screen()).not.toContain("no job control");
    screen.type("cat");
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
    const screen = terminal(world);
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
    const screen = terminal(world);
    screen.type(`${podbot} sandbox -- stty size`);
    await screen.sees(/^40 120$/m);
  });
});
