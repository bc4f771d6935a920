import { spawnSync } from "node:child_process";
import { setImmediate } from "node:timers/promises";
import { isatty } from "node:tty";
import { isInForeground } from "./process.ts";
import { findNativePrograms } from "./programs.ts";

/** The terminal of this process: the one thing of it that Node reaches only through its global streams. */
export interface OwnTerminal {
  size(): { readonly rows: number; readonly columns: number } | null;
  onResize(listener: () => void): () => void;
  setRaw(raw: boolean): void;
  suspend(over: AbortSignal): Promise<void>;
}

/** Null unless standard input and output are both a terminal. */
export function ownTerminal(): OwnTerminal | null {
  if (!isatty(0) || !isatty(1)) return null;
  const { stdin, stdout } = process;
  dieWithTerminal();
  // Whoever stopped us, the shell has set the terminal for itself meanwhile.
  const renew = () => {
    if (!isInForeground()) return;
    makeRaw();
    askSize();
  };
  return {
    size() {
      const { rows, columns } = stdout;
      return rows > 0 && columns > 0 ? { rows, columns } : null;
    },
    onResize(listener) {
      stdout.on("resize", listener);
      return () => stdout.off("resize", listener);
    },
    setRaw(raw) {
      process.off("SIGCONT", renew);
      if (raw) process.on("SIGCONT", renew);
      if (raw) makeRaw();
      else stdin.setRawMode(false);
    },
    async suspend(over) {
      await stopJob("SIGTSTP");
      // Without the terminal there is nothing to do in the background: `bg` is answered as an editor would.
      while (!over.aborted && !isInForeground()) await stopJob("SIGTTOU");
      if (!over.aborted) askSize();
    },
  };
}

/**
 * A terminal that has been closed can be neither set nor asked any more; whoever reads it hears of its end. At its own,
 * Node would try once more and fail an assertion: like every program, it ends by the hangup instead.
 */
function dieWithTerminal(): void {
  let isClosed = false;
  const onError = ({ code }: NodeJS.ErrnoException) => {
    isClosed ||= code === "EIO";
  };
  process.stdin.on("error", onError);
  process.stdout.on("error", onError);
  process.once("exit", () => {
    if (isClosed) process.kill(process.pid, "SIGHUP");
  });
}

function makeRaw(): void {
  const { stdin } = process;
  // What is to be restored later is remembered only on the way from one to the other.
  stdin.setRawMode(false);
  stdin.setRawMode(true);
  // Node leaves the treatment of output on, which makes a new line of each line feed of a program that draws.
  // By its path and with nothing of ours: what PATH leads to may have been put there by the agent.
  spawnSync(findNativePrograms().raw, [], { cwd: "/", env: {}, stdio: ["inherit", "ignore", "ignore"] });
}

/** Only who is in the foreground is told of a new size: afterwards Node must look for itself. */
function askSize(): void {
  process.kill(process.pid, "SIGWINCH");
}

/** Who is not stopped although asked to, having no shell that could let it go on, goes on at once. */
const stopMs = 100;

/** The whole job, as the terminal would: whoever waits for it in a script or a pipe must see it stop. */
async function stopJob(signal: "SIGTSTP" | "SIGTTOU"): Promise<void> {
  await new Promise<void>((resolve) => {
    const goOn = () => {
      clearTimeout(timer);
      process.off("SIGCONT", goOn);
      resolve();
    };
    const timer = setTimeout(goOn, stopMs);
    process.once("SIGCONT", goOn);
    process.kill(0, signal);
  });
  // What came together with the permission to go on, such as the request to end, is to be heard first.
  await setImmediate();
}
