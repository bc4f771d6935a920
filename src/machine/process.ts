import { readFileSync, readlinkSync } from "node:fs";
import { userInfo } from "node:os";

/** Fields of /proc/PID/stat after the program's name, which may itself hold spaces and brackets. */
export function statFields(pid: number | "self"): readonly string[] | null {
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

/** Whether a process that began then still runs: a zombie does not, and neither does one that only has its number. */
export function isRunning(pid: number, started: string): boolean {
  const fields = statFields(pid);
  return fields !== null && fields[19] === started && !"ZXx".includes(fields[0] as string);
}

/** Whether we are that user. */
export function isOurUser(uid: number | undefined): boolean {
  return uid !== undefined && uid === process.geteuid?.();
}

/** Whether that user is one that root of a rootless container of ours may become. */
export function isSubordinate(uid: number, table = readTable("/etc/subuid")): boolean {
  const own = [String(process.geteuid?.()), ownName()];
  return table.split("\n").some((line) => {
    const [name = "", first, count] = line.split(":");
    return own.includes(name) && uid >= Number(first) && uid < Number(first) + Number(count);
  });
}

function readTable(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** Empty for a user that the machine does not know. */
function ownName(): string {
  try {
    return userInfo().username;
  } catch {
    return "";
  }
}

/** This process, so that another one can tell whether it still runs. */
export interface OwnMark {
  readonly pid: number;
  readonly started: string;
  readonly space: string;
}

export function ownMark(): OwnMark {
  const { pid } = process;
  return { pid, started: startTimeOf(pid) ?? "", space: processSpace() };
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
