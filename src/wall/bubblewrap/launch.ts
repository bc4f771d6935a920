import { type ChildProcess, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { WallError } from "../../errors.ts";
import { thisHost } from "../../machine/host.ts";
import { childrenOf, isInForeground, sendSignal } from "../../machine/process.ts";
import type { NativePrograms } from "../../machine/programs.ts";
import type { Birth, Exit, Signal, Stdio } from "../wall.ts";
import type { Letter } from "./letter.ts";

/** Complaints and status are bytes from inside: bounded, and only words for people. */
const mostBytes = 16_384;

export interface Launched {
  readonly exit: Exit;
  /** Whether the command ran: bubblewrap reported its exit status. */
  readonly ran: boolean;
  readonly complaint: string;
}

/** Starts bubblewrap through the launcher and waits for its end. */
export async function launch(
  programs: { readonly native: NativePrograms; readonly bwrap: string },
  letter: Letter,
  pins: readonly number[],
  birth: Birth,
  stdio: Stdio,
  graceMs: number,
): Promise<Launched> {
  const [stdin, stdout, stderr] = stdio;
  const child = spawn(programs.native.launch, [`${thisHost().pid}`, programs.bwrap], {
    cwd: "/",
    env: { ...birth.env },
    stdio: [stdin, stdout, "pipe", "pipe", "pipe", stderr, ...pins],
  });
  const complaint = collect(child.stdio[2] as Readable);
  const status = collect(child.stdio[4] as Readable);
  const letterbox = child.stdio[3] as Writable;
  // A launcher that dies early breaks the pipe; its exit tells more than the broken pipe would.
  letterbox.on("error", () => {});
  letterbox.end(letter.bytes);
  const ending = endWith(child, status, birth, graceMs);
  try {
    const code = await closed(child);
    const reported = /"exit-code"\s*:\s*(\d+)/.exec(status.text())?.[1];
    return {
      exit: { code: reported === undefined ? code : Number(reported), killed: ending.killed() },
      ran: reported !== undefined || ending.killed(),
      complaint: complaint.text(),
    };
  } finally {
    ending.stop();
  }
}

interface Collected {
  text(): string;
}

function collect(stream: Readable): Collected {
  const chunks: Buffer[] = [];
  let size = 0;
  stream.on("error", () => {});
  stream.on("data", (chunk: Buffer) => {
    if (size < mostBytes) chunks.push(chunk);
    size += chunk.length;
  });
  return { text: () => Buffer.concat(chunks).toString("utf8") };
}

function closed(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once("error", (cause) =>
      reject(
        new WallError("NATIVE_MISSING", `Podbot's launcher could not be started: ${cause.message}`, {
          hint: "Reinstall Podbot, or in a checkout: make build.",
          cause,
        }),
      ),
    );
    child.once("close", (code, signal) => resolve(code ?? (signal === "SIGKILL" ? 137 : 125)));
  });
}

/** Passes signals on to the command itself, and ends everything when the grace period is over. */
function endWith(child: ChildProcess, status: Collected, birth: Birth, graceMs: number) {
  let timer: NodeJS.Timeout | undefined;
  let killed = false;
  const kill = () => {
    killed = true;
    child.kill("SIGKILL");
  };
  const end = (signal: Signal) => {
    // A second request is a person who does not want to wait.
    if (timer !== undefined) return kill();
    timer = setTimeout(kill, graceMs);
    if (!signalCommand(status.text(), signal)) kill();
  };
  const onSignal = (signal: Signal) => {
    // The terminal has sent its Ctrl-C to the command as well: what it means there is the command's own affair.
    if ((signal === "SIGINT" || signal === "SIGQUIT") && isInForeground()) return;
    end(signal);
  };
  const onAbort = () => end("SIGTERM");
  const forget = birth.onSignal?.(onSignal);
  birth.signal?.addEventListener("abort", onAbort, { once: true });
  if (birth.signal?.aborted) onAbort();
  return {
    killed: () => killed,
    stop: () => {
      clearTimeout(timer);
      forget?.();
      birth.signal?.removeEventListener("abort", onAbort);
    },
  };
}

/** bubblewrap forwards nothing, so the signal goes to its grandchild: the command. False where it does not run yet. */
function signalCommand(status: string, signal: Signal): boolean {
  const init = /"child-pid"\s*:\s*(\d+)/.exec(status)?.[1];
  const [command] = init === undefined ? [] : childrenOf(Number(init));
  return command !== undefined && sendSignal(command, signal);
}
