import { pipeline } from "node:stream/promises";
import { setTimeout as wait } from "node:timers/promises";
import type { Process, Size, TerminalProcess } from "../sandbox/sandbox.ts";
import type { Exit, Signal } from "../wall/wall.ts";
import type { Io, Streams, Terminal } from "./io.ts";

/** What a terminal that does not say its size is taken for. */
export const ordinarySize: Size = { rows: 24, columns: 80 };

/** Joins a process on pipes to the caller's own streams until it ends. */
export async function attachPipes(
  process: Process,
  { input, output, errors }: Streams,
  io: Io,
  graceMs: number,
): Promise<Exit> {
  const forget = io.onSignal(passOn(process, graceMs));
  try {
    void pipeline(input, process.stdin).catch(() => {});
    const [exit] = await Promise.all([
      process.exited,
      carry(process, process.stdout, output),
      carry(process, process.stderr, errors),
    ]);
    return exit;
  } finally {
    forget();
    input.destroy();
  }
}

/** Joins a process on a terminal to the caller's terminal, which is raw meanwhile and as before afterwards. */
export async function attachTerminal(
  process: TerminalProcess,
  terminal: Terminal,
  streams: Streams,
  io: Io,
  graceMs: number,
): Promise<Exit> {
  const over = new AbortController();
  const pass = passOn(process, graceMs);
  const onSignal = (signal: Signal) => {
    if (signal === "SIGTERM" || signal === "SIGHUP") over.abort();
    pass(signal);
  };
  // A terminal that does not say its size is left as it was.
  const resize = () => {
    const size = terminal.size();
    if (size !== null) process.resize(size);
  };
  const forget = [io.onSignal(onSignal), terminal.onResize(resize)];
  process.onStop(suspender(process, terminal, streams, over.signal));
  const modes = new ScreenModes();
  terminal.setRaw(true);
  try {
    // Not a pipeline: that would close the terminal with whatever goes wrong, and nobody could set it back.
    streams.input.pipe(process.stdin);
    process.stdout.on("data", (bytes: Buffer) => modes.see(bytes));
    const [exit] = await Promise.all([process.exited, carry(process, process.stdout, streams.output)]);
    if (exit.code > 128) await write(streams.output, modes.undo());
    return exit;
  } catch (error) {
    await write(streams.output, modes.undo());
    throw error;
  } finally {
    over.abort();
    terminal.setRaw(false);
    for (const stop of forget) stop();
    streams.input.destroy();
  }
}

/** When the command inside was stopped, the job that the caller's shell knows stops too, and goes on with it. */
function suspender(
  process: TerminalProcess,
  terminal: Terminal,
  { input, output }: Streams,
  over: AbortSignal,
): () => void {
  let isSuspended = false;
  const suspend = async () => {
    input.pause();
    // The shell may have the screen only when the command's last words are on it.
    while (!output.destroyed && process.stdout.readableLength + output.writableLength > 0) await wait(1);
    terminal.setRaw(false);
    await terminal.suspend(over);
    isSuspended = false;
    if (!over.aborted) {
      terminal.setRaw(true);
      input.resume();
    }
    process.kill("SIGCONT");
  };
  return () => {
    if (isSuspended) return;
    isSuspended = true;
    void suspend();
  };
}

/** Resolves when this and all that came before it has been written, or cannot be: what is said next comes after it. */
function write(output: Streams["output"], text: string): Promise<void> {
  return new Promise((resolve) => output.write(text, () => resolve()));
}

/** Where the reader has left (`… | head`), the process inside must feel it as it would on a pipe of its own. */
async function carry(
  process: Pick<Process, "kill">,
  from: NodeJS.ReadableStream,
  to: Streams["output"],
): Promise<void> {
  try {
    await pipeline(from, to, { end: false });
    // It has passed everything on, but not all of that need have been written.
    if (to.writableLength > 0) await write(to, "");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // The window of a terminal has been closed.
    if (code === "EIO") process.kill("SIGHUP");
    else if (code !== "EPIPE") throw error;
  }
}

/**
 * Passes signals on. Ctrl-C is the command's own affair, as often as it comes; who asks it to end means it, and who
 * asks twice does not want to wait.
 */
function passOn(process: Pick<Process, "kill" | "end" | "exited">, graceMs: number): (signal: Signal) => void {
  let isAsked = false;
  let timer: NodeJS.Timeout | undefined;
  process.exited.finally(() => clearTimeout(timer)).catch(() => {});
  return (signal) => {
    if (signal === "SIGINT" || signal === "SIGQUIT") return process.kill(signal);
    if (isAsked) return process.end(0);
    isAsked = true;
    if (signal === "SIGTERM") return process.end(graceMs);
    // A command that knows what to do about a hangup must not be asked for something else at the same time.
    process.kill(signal);
    // What is stopped would not notice.
    process.kill("SIGCONT");
    timer = setTimeout(() => process.end(0), graceMs);
  };
}

/** The alternate screen, mouse and focus reports, bracketed paste, keys of an application. */
const undone = ["1", "47", "1000", "1002", "1003", "1004", "1005", "1006", "1015", "1047", "1049", "2004"];
const cursor = "25";
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what terminals understand.
const change = /\u001b\[\?([\d;]{1,64})([hl])/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: as above.
const beginning = /\u001b(?:\[(?:\?[\d;]{0,64})?)?$/;

/**
 * What a program has switched on in the terminal, so that it can be switched off if the program is killed. Nothing else
 * is: to leave an alternate screen that nobody has entered moves the cursor.
 */
class ScreenModes {
  readonly #left = new Set<string>();
  #rest = "";

  see(bytes: Buffer): void {
    if (this.#rest === "" && !bytes.includes(0x1b)) return;
    const text = this.#rest + bytes.toString("latin1");
    for (const [, modes = "", action] of text.matchAll(change)) {
      for (const mode of modes.split(";")) {
        if ((action === "h") === (mode === cursor)) this.#left.delete(mode);
        else if (mode === cursor || undone.includes(mode)) this.#left.add(mode);
      }
    }
    this.#rest = beginning.exec(text)?.[0] ?? "";
  }

  undo(): string {
    const words = [...this.#left].map((mode) => `\u001b[?${mode}${mode === cursor ? "h" : "l"}`);
    return `${words.join("")}\u001b[0m`;
  }
}
