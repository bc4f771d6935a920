import { readdirSync, readFileSync } from "node:fs";

export interface RunningProcess {
  readonly pid: number;
  readonly argv: readonly string[];
}

/**
 * Processes of this user in this very pid namespace. Those in a box are seen from here too, under any name that they
 * choose; the kernel's own list of their pids tells them apart.
 */
export function ownProcesses(uid: number): readonly RunningProcess[] {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    const pid = Number(name);
    const owner = ownerOf(pid);
    return owner?.uid === uid && !owner.isInBox ? [{ pid, argv: argvOf(pid) }] : [];
  });
}

export interface FirstProcess extends RunningProcess {
  /** Its parent's argument list. */
  readonly parent: readonly string[];
}

/** Processes of this user that are the first of a pid namespace right below ours. */
export function firstProcesses(uid: number): readonly FirstProcess[] {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    const status = statusOf(Number(name));
    if (status === null || !new RegExp(`^Uid:\t${uid}\t`, "m").test(status) || !/^NSpid:\t\d+\t1$/m.test(status))
      return [];
    const parent = Number(/^PPid:\t(\d+)/m.exec(status)?.[1]);
    return [{ pid: Number(name), argv: argvOf(Number(name)), parent: argvOf(parent) }];
  });
}

function statusOf(pid: number): string | null {
  try {
    return readFileSync(`/proc/${pid}/status`, "latin1");
  } catch {
    return null;
  }
}

/** Whether two processes are one, or have the same parent, which has not left them to the machine's first process. */
export function isKin(pid: number, other: number): boolean {
  const [parent, another] = [pid, other].map((each) => Number(/^PPid:\t(\d+)/m.exec(statusOf(each) ?? "")?.[1]));
  return pid === other || (parent === another && parent !== undefined && parent > 1);
}

/** Whether it is the first process of a pid namespace below ours. */
export function isFirstOfBox(pid: number): boolean {
  return /^NSpid:\t\d.*\t1$/m.test(statusOf(pid) ?? "");
}

export interface Owner {
  readonly uid: number;
  /** Whether it lives in a pid namespace below ours. */
  readonly isInBox: boolean;
}

/** Null where the process is gone. */
export function ownerOf(pid: number): Owner | null {
  const status = statusOf(pid) ?? "";
  const uid = /^Uid:\t(\d+)/m.exec(status)?.[1];
  const pids = /^NSpid:\t(.*)$/m.exec(status)?.[1];
  if (uid === undefined || pids === undefined) return null;
  return { uid: Number(uid), isInBox: pids.split("\t").length > 1 };
}

/** Empty where there is no such process, or it says nothing. */
export function argvOf(pid: number): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, -1);
  } catch {
    return [];
  }
}
