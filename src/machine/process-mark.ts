import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { isRunning, processSpace, startTimeOf, statFields } from "./process.ts";

/** Names a process for good, also for readers on other machines and in other containers that share a disk with us. */
export interface ProcessMark {
  readonly pid: number;
  /** In ticks since boot. */
  readonly started: string;
  /** The boot, then the pid namespace. */
  readonly space: string;
  /** The machine, so that another machine's boot is not taken for an earlier one of ours. */
  readonly machine: string;
}

/** Null where there is no such process, or nobody can tell. */
export function markOf(pid: number, started: string | null = startTimeOf(pid)): ProcessMark | null {
  const space = processSpace();
  return started === null || space === "" ? null : { pid, started, space, machine: thisMachine() };
}

/** Elsewhere is where nothing can be said from here: another machine or another pid namespace. */
export function lookAt(mark: ProcessMark): "alive" | "stopped" | "dead" | "elsewhere" {
  const here = processSpace();
  if (here === "" || mark.machine !== thisMachine()) return "elsewhere";
  if (mark.space !== here) return bootOf(mark.space) === bootOf(here) ? "elsewhere" : "dead";
  if (!isRunning(mark.pid, mark.started)) return "dead";
  return statFields(mark.pid)?.[0] === "T" ? "stopped" : "alive";
}

function bootOf(space: string): string | undefined {
  return space.split(" ")[0];
}

/** Hashed, as machine-id(5) asks: the id itself is nobody's business. Containers without one share the empty one. */
function thisMachine(): string {
  try {
    const id = readFileSync("/etc/machine-id", "latin1").trim();
    return createHash("sha256").update(`podbot ${id}`).digest("hex").slice(0, 16);
  } catch {
    return "";
  }
}
