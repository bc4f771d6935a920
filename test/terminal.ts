import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach } from "vitest";
import { program as podbot, type World } from "./world.ts";

const usualShell = "bash --norc --noprofile";

/** A real terminal with a shell in it, driven as a person would. On its PATH is the built program, as `podbot`. */
export class Terminal {
  readonly #socket = join(tmpdir(), `tmux-${process.pid}-${Math.random().toString(36).slice(2)}`);

  /** A program may take the shell's place: then nobody controls jobs. */
  constructor(world: World, program = usualShell) {
    const { HOME, XDG_RUNTIME_DIR } = world.env;
    const bin = join(world.directory, "bin");
    if (!existsSync(join(bin, "podbot"))) world.link("bin/podbot", podbot);
    const variables = `HOME=${HOME} XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR} PATH=${bin}:${dirname(process.execPath)}:$PATH PS1='$ '`;
    const shell = `cd ${world.project} && export ${variables} && exec ${program}`;
    this.#tmux("-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "40", shell);
    if (program !== usualShell) return;
    // Keys that come before the prompt are echoed twice.
    for (let tries = 0; tries < 500 && !/\$ ?$/.test(this.screen()); tries++) spawnSync("sleep", ["0.04"]);
  }

  /** A line, and Enter. */
  type(text: string): void {
    this.write(text);
    this.press("Enter");
  }

  /** Keys as they are, without Enter. */
  write(text: string): void {
    this.#tmux("send-keys", "-l", text);
  }

  /** Keys by name, such as C-c, Up, Escape. */
  press(...keys: string[]): void {
    this.#tmux("send-keys", ...keys);
  }

  resize(columns: number, rows: number): void {
    this.#tmux("resize-window", "-x", String(columns), "-y", String(rows));
  }

  /** Without the empty lines at its end. */
  screen(): string {
    return this.#tmux("capture-pane", "-p", "-J").replace(/\n+$/, "");
  }

  /** Keys must not be sent before the program that they are meant for shows that it is there. */
  async sees(pattern: RegExp): Promise<void> {
    for (let tries = 0; tries < 500; tries++) {
      if (pattern.test(this.screen())) return;
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
    throw new Error(`waited in vain for the screen to show ${pattern}:\n${this.screen()}`);
  }

  /** What programs can switch on and off. */
  modes(): string {
    return this.#tmux("display-message", "-p", "cursor=#{cursor_flag} mouse=#{mouse_any_flag}").trim();
  }

  /** Waits until a program has the terminal for itself: before, the terminal would echo the keys too. */
  async isRaw(): Promise<void> {
    const terminal = this.#tmux("display-message", "-p", "#{pane_tty}").trim();
    for (let tries = 0; tries < 500; tries++) {
      if (spawnSync("stty", ["-F", terminal, "-a"], { encoding: "utf8" }).stdout.includes("-icanon")) return;
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
    throw new Error(`waited in vain for the terminal to be raw:\n${this.screen()}`);
  }

  /** Closes the window, as by a click. */
  hangUp(): void {
    this.#tmux("kill-pane");
  }

  close(): void {
    spawnSync("tmux", ["-S", this.#socket, "kill-server"]);
  }

  #tmux(...words: string[]): string {
    const { status, stdout, stderr } = spawnSync("tmux", ["-S", this.#socket, ...words], {
      encoding: "utf8",
      env: { PATH: process.env["PATH"] ?? "", TERM: "xterm", LANG: "C.UTF-8", HOME: "/nonexistent" },
    });
    if (status !== 0) throw new Error(`tmux ${words.join(" ")}: ${stderr}`);
    return stdout;
  }
}

const open: Terminal[] = [];

/** One that is closed when the test is over. */
export function openTerminal(world: World, program?: string): Terminal {
  const made = new Terminal(world, program);
  open.push(made);
  return made;
}

afterEach(() => {
  for (const made of open.splice(0)) made.close();
});
