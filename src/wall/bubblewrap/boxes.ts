import { setTimeout } from "node:timers/promises";
import { WallError } from "../../errors.ts";
import { isRunning, sendSignal, startTimeOf } from "../../machine/process.ts";
import { firstProcesses, ownProcesses } from "../../machine/processes.ts";
import { corner } from "../../plan/wrappers.ts";
import type { SessionId } from "../wall.ts";
import { endBox, socketInside } from "./box.ts";

const pattern = new RegExp(`^${socketInside("([a-z0-9]+)").replaceAll(".", "\\.")}$`);

/** How long the kernel may take to end a box. */
const mostMs = 10_000;

/** The boxes that exist, by the processes that wait for them. */
export function listBoxes(uid: number): ReadonlyMap<SessionId, readonly number[]> {
  const boxes = new Map<SessionId, number[]>();
  for (const { pid, argv } of ownProcesses(uid)) {
    if (argv[0] !== "bwrap") continue;
    const id = pattern.exec(argv.at(-1) ?? "")?.[1];
    if (id !== undefined) boxes.set(id, [...(boxes.get(id) ?? []), pid]);
  }
  return boxes;
}

/**
 * Ends what is left where bubblewrap was killed before its child had asked to die with it: that one waits for its
 * parent for ever. What builds a box properly has bubblewrap as its parent.
 */
export async function endHalfBuilt(uid: number): Promise<void> {
  const halves = firstProcesses(uid).filter(
    ({ argv, parent }) => argv[0] === "bwrap" && argv.includes(`${corner}/enter`) && parent[0] !== "bwrap",
  );
  const left = await end(halves, (pid) => sendSignal(pid, "SIGKILL"));
  if (left.length > 0) throw unending("What bubblewrap has left of a box does not end.", left);
}

/** Ends a box, whoever started it, and waits until it is gone. */
export async function destroyBox(uid: number, id: SessionId): Promise<void> {
  const pids = (listBoxes(uid).get(id) ?? []).map((pid) => ({ pid }));
  const left = await end(pids, endBox);
  if (left.length > 0) throw unending(`The box of session ${id} does not end.`, left);
}

/** Gives those that did not end in time. */
async function end(pids: readonly { readonly pid: number }[], kill: (pid: number) => void): Promise<readonly number[]> {
  const known = pids.map(({ pid }) => ({ pid, started: startTimeOf(pid) }));
  const living = () => known.filter(({ pid, started }) => started !== null && isRunning(pid, started));
  for (let waited = 0; waited < mostMs && living().length > 0; waited += 10) {
    for (const { pid } of living()) kill(pid);
    await setTimeout(10);
  }
  return living().map(({ pid }) => pid);
}

function unending(message: string, pids: readonly number[]): WallError {
  return new WallError("WALL_FAILED", message, {
    hint: `Look at process ${pids.join(", ")}: it may be waiting for a disk or a network file system.`,
  });
}
