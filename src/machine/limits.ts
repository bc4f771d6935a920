import { readFileSync } from "node:fs";

export interface ProcessLimit {
  readonly name: string;
  readonly soft: number;
  readonly hard: number;
}

/** More than any agent needs, and no more than engines keep for themselves: Podman lowers its own to this. */
const most = { nofile: 65_536, nproc: 32_768 } as const;

/**
 * What a process may have here of what container engines like to raise: without the right to raise them (as in many
 * virtual machines) a container with more does not start at all.
 */
export function hardLimits(): readonly ProcessLimit[] {
  let text: string;
  try {
    text = readFileSync("/proc/self/limits", "latin1");
  } catch {
    return [];
  }
  const limit = (name: keyof typeof most, title: string): readonly ProcessLimit[] => {
    const [, hard] = new RegExp(`^${title} +\\S+ +(\\S+)`, "m").exec(text) ?? [];
    if (hard === undefined) return [];
    const value = hard === "unlimited" ? most[name] : Math.min(Number(hard), most[name]);
    return [{ name, soft: value, hard: value }];
  };
  return [...limit("nofile", "Max open files"), ...limit("nproc", "Max processes")];
}
