import { type ChildProcess, spawn } from "node:child_process";
import { closeSync } from "node:fs";
import type { Socket } from "node:net";
import { WallError } from "../../errors.ts";
import { openAnonymous, readStart } from "../../machine/anonymous-file.ts";
import { thisHost } from "../../machine/host.ts";
import { childrenOf, isInForeground, sendSignal } from "../../machine/process.ts";
import type { NativePrograms } from "../../machine/programs.ts";
import type { Birth, Exit, Signal, Stdio } from "../wall.ts";
import { descriptors, type Letter } from "./letter.ts";

/** Complaints are bytes from inside: bounded, and only words for people. */
export const mostBytes = 16_384;

export interface Programs {
  readonly native: NativePrograms;
  readonly bwrap: string;
}

export interface Launched {
  readonly exit: Exit;
  /** Whether the wall was built and the command's turn came. */
  readonly ran: boolean;
  readonly complaint: string;
}

/** Starts bubblewrap through the launcher and waits for its end. `pins` are closed once the launcher has its own. */
export async function launch(
  programs: Programs,
  letter: Letter,
  pins: Disposable,
  birth: Birth,
  stdio: Stdio,
  graceMs: number,
): Promise<Launched> {
  // Not for a box without: it must not wait for what it does not use.
  const collect = letter.doors === null ? null : (await import("../doors.ts")).collectDoors;
  // A file and not a pipe: for one pipe, Node would set up all of its streams, which takes longer than the start.
  const complaints = openAnonymous();
  const complaint = () => readStart(complaints, mostBytes);
  const isReady = () => complaint().includes("podbot-enter: ready\n");
  try {
    const child = startLauncher(programs, letter, complaints, stdio);
    // The owner can unmount what is mounted inside: an open descriptor would keep it busy.
    pins[Symbol.dispose]();
    const ending = endWith(child, isReady, birth, graceMs);
    const doors = collect?.(child, letter.doors ?? []);
    const failures: unknown[] = [];
    // Why there are none, the complaints say: the first program inside has ended by itself.
    doors
      ?.then(
        (opened) => {
          birth.onDoors?.(opened);
          letBegin(child);
        },
        () => {},
      )
      .catch((error: unknown) => {
        failures.push(error);
        child.kill("SIGKILL");
      });
    try {
      const code = await closed(child);
      if (failures.length > 0) throw failures[0];
      return {
        exit: { code, killed: ending.killed() },
        ran: isReady() || ending.killed(),
        complaint: complaint(),
      };
    } finally {
      ending.stop();
      await doors?.then((opened) => opened[Symbol.asyncDispose]()).catch(() => {});
    }
  } finally {
    closeSync(complaints);
  }
}

export function startLauncher(
  { native, bwrap }: Programs,
  letter: Letter,
  complaints: number,
  [stdin, stdout, stderr]: Stdio,
  detached = false,
): ChildProcess {
  const written = openAnonymous(letter.bytes);
  try {
    const child = spawn(native.launch, [`${thisHost().pid}`, bwrap], {
      cwd: "/",
      detached,
      // bubblewrap is not the command: what it finds in its environment (LD_PRELOAD) would act outside.
      env: {},
      stdio: [
        stdin,
        stdout,
        complaints,
        written,
        stderr,
        ...letter.pins,
        ...letter.late.map(() => "pipe" as const),
        ...(letter.doors === null ? [] : ["ipc" as const]),
      ],
    });
    sendLate(child, descriptors.firstPin + letter.pins.length, letter.late);
    return child;
  } finally {
    closeSync(written);
  }
}

/** Of a box with doors, whose first program waits for it. Where the channel has ended, it has given up already. */
export function letBegin(child: ChildProcess): void {
  child.send("begin", () => {});
}

/** While bubblewrap is at work, this costs no time. Where it fails, nothing may run: a file would end too early. */
function sendLate(child: ChildProcess, first: number, files: Letter["late"]): void {
  const pipes = files.map((_, index) => child.stdio[first + index] as Socket | undefined);
  const end = () => child.kill("SIGKILL");
  const close = () => {
    for (const pipe of pipes) pipe?.destroy();
  };
  // Half a box that a killed bubblewrap has left holds its ends open, and reads nothing.
  child.once("exit", close);
  try {
    for (const [index, { bytes }] of files.entries()) {
      const pipe = pipes[index];
      pipe?.on("error", end);
      pipe?.end(bytes, () => pipe.destroy());
    }
  } catch (error) {
    child.on("error", () => {});
    end();
    close();
    throw error;
  }
}

export function closed(child: ChildProcess): Promise<number> {
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
function endWith(child: ChildProcess, isReady: () => boolean, birth: Birth, graceMs: number) {
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
    // What is not yet the command ignores signals.
    if (!isReady() || !signalCommand(child, signal)) kill();
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

/**
 * bubblewrap forwards nothing, so the signal goes to its grandchild: below its monitor is the box's init, below that
 * the command.
 */
function signalCommand(child: ChildProcess, signal: Signal): boolean {
  const [init] = child.pid === undefined ? [] : childrenOf(child.pid);
  const [command] = init === undefined ? [] : childrenOf(init);
  return command !== undefined && sendSignal(command, signal);
}
