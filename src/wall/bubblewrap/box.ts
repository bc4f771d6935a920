import type { ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmodSync, closeSync, mkdirSync, openSync } from "node:fs";
import { join } from "node:path";
import { FilesystemError } from "../../errors.ts";
import { openAnonymous, readStart } from "../../machine/anonymous-file.ts";
import { childrenOf, sendSignal } from "../../machine/process.ts";
import type { Operation, Plan } from "../../plan/plan.ts";
import { corner } from "../../plan/wrappers.ts";
import { collectDoors } from "../doors.ts";
import { doorsOf } from "../guarded.ts";
import { bindOwn } from "../own.ts";
import { bindsOf, openPins } from "../pin.ts";
import { openReception, type Reception } from "../reception.ts";
import type { Box, BoxBirth, Exit } from "../wall.ts";
import { wallFailure } from "./complaint.ts";
import { closed, letBegin, mostBytes, type Programs, startLauncher } from "./launch.ts";
import { writeLetter } from "./letter.ts";

/** The name of a session's socket, by which its box is known in the list of processes, too. */
function socketName(id: string): string {
  return `${id}.sock`;
}

/** The warden's argument, as it is seen inside and in bubblewrap's own command line. */
export function socketInside(id: string): string {
  return `${corner}/in/${socketName(id)}`;
}

/** Builds a box with the warden in it; resolves when the warden has called. */
export async function startBox(programs: Programs, plan: Plan, filter: Uint8Array, birth: BoxBirth): Promise<Box> {
  const inlet = makeInlet(birth.directory);
  const token = randomBytes(32);
  const reception = await openReception(join(inlet, socketName(birth.id)), token);
  const complaints = openAnonymous();
  const complaint = () => readStart(complaints, mostBytes);
  try {
    const child = launchWarden(programs, born(plan, inlet, birth.own), filter, birth, token, complaints);
    const exited = closed(child).then((code): Exit => ({ code, killed: false }));
    // Whoever does not wait for the end need not hear of its failure.
    exited.catch(() => {});
    exited.finally(() => reception[Symbol.dispose]()).catch(() => {});
    const ports = doorsOf(plan);
    const opened = ports === null ? null : collectDoors(child, ports);
    opened?.then(() => letBegin(child)).catch(() => {});
    opened?.then((doors) => exited.finally(() => doors[Symbol.asyncDispose]())).catch(() => {});
    await calledOrFailed(reception, child, exited, complaint, birth.signal);
    // They were there before the warden was.
    const doors = await opened;
    return {
      id: birth.id,
      connect: (signal) => reception.connect(signal),
      isThere: () => isThere(child),
      doors,
      exited,
      async [Symbol.asyncDispose]() {
        endBox(child.pid);
        await exited;
      },
    };
  } catch (error) {
    reception[Symbol.dispose]();
    throw error;
  } finally {
    closeSync(complaints);
  }
}

/** What is mounted inside: nothing of it can be changed there, and all of it may be reached by any user of the box. */
function makeInlet(directory: string): string {
  const inlet = join(directory, "in");
  try {
    mkdirSync(inlet, { recursive: true, mode: 0o755 });
    chmodSync(inlet, 0o755);
  } catch (cause) {
    throw new FilesystemError("FILESYSTEM", `The session's directory ${inlet} cannot be made.`, {
      hint: "Make its parent writable, or set XDG_RUNTIME_DIR to a directory that is.",
      cause,
    });
  }
  return inlet;
}

function born(plan: Plan, inlet: string, own: BoxBirth["own"]): Plan {
  const operations = plan.operations.map((operation): Operation => {
    const { target, why } = operation;
    if (operation.kind === "inlet") {
      return { kind: "bind", source: inlet, target, access: "ro", identity: null, why };
    }
    return operation.kind === "own" ? bindOwn(operation, own) : operation;
  });
  return { ...plan, operations };
}

function launchWarden(
  programs: Programs,
  plan: Plan,
  filter: Uint8Array,
  { id, env, trust = [] }: BoxBirth,
  token: Buffer,
  complaints: number,
): ChildProcess {
  // As the first process of its namespace, nobody inside can kill it.
  const command = [`${corner}/warden`, socketInside(id)];
  const pins = openPins(bindsOf(plan));
  const secret = openAnonymous(token);
  const nothing = openSync("/dev/null", "r+");
  try {
    const letter = writeLetter(plan, filter, env, pins, { first: { options: ["--as-pid-1"], command }, trust });
    // A session of its own, so that no terminal of ours reaches into the box and no Ctrl-C of ours ends it.
    return startLauncher(programs, letter, complaints, [secret, nothing, nothing], true);
  } finally {
    closeSync(nothing);
    closeSync(secret);
    pins[Symbol.dispose]();
  }
}

async function calledOrFailed(
  reception: Reception,
  child: ChildProcess,
  exited: Promise<Exit>,
  complaint: () => string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const onAbort = () => endBox(child.pid);
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    if (signal?.aborted) onAbort();
    const outcome = await Promise.race([reception.called, exited]);
    if (outcome === undefined) return;
    signal?.throwIfAborted();
    throw wallFailure(complaint());
  } finally {
    signal?.removeEventListener("abort", onAbort);
  }
}

function isThere({ pid, exitCode, signalCode }: ChildProcess): boolean {
  return pid !== undefined && exitCode === null && signalCode === null && childrenOf(pid).length > 0;
}

/**
 * Kills the first process of the box: bubblewrap, which waits for it, ends when the kernel has ended all the others.
 * Were bubblewrap killed instead, the rest would end as surely, but at a time that nobody knows.
 */
export function endBox(bwrap: number | undefined): void {
  if (bwrap === undefined) return;
  const [first] = childrenOf(bwrap);
  if (first === undefined || !sendSignal(first, "SIGKILL")) sendSignal(bwrap, "SIGKILL");
}
