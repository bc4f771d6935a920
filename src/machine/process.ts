import { readFileSync, readlinkSync } from "node:fs";

/** Fields of /proc/PID/stat after the program's name, which may itself hold spaces and brackets. */
function statFields(pid: number | "self"): readonly string[] | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  } catch {
    return null;
  }
}

/** When a process began, in ticks since boot: with the pid, this names a process for good. */
export function startTimeOf(pid: number): string | null {
  return statFields(pid)?.[19] ?? null;
}

/** Where pids mean the same: the boot, then the pid namespace. */
export function processSpace(): string {
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
    return `${boot} ${readlinkSync("/proc/self/ns/pid")}`;
  } catch {
    return "";
  }
}

/** Whether the terminal sends its Ctrl-C to this process (and so to all of its group) right now. */
export function isInForeground(): boolean {
  const fields = statFields("self");
  if (fields === null) return false;
  const [, , group, , terminal, foreground] = fields;
  return terminal !== "0" && group === foreground;
}

/** False where the process is gone or not ours. */
export function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

export function childrenOf(pid: number): readonly number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1")
      .split(" ")
      .filter((word) => word !== "")
      .map(Number);
  } catch {
    return [];
  }
}
