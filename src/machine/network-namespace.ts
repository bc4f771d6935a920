import { readlinkSync } from "node:fs";

/** The inode by which the network of a process is known; null where it may not be asked for, or there is no process. */
export function networkOf(pid: number): string | null {
  try {
    return /^net:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/ns/net`))?.[1] ?? null;
  } catch {
    return null;
  }
}
