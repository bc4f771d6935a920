import { readdirSync, readFileSync } from "node:fs";

/** A file's text, or "" if the file is gone or this user may not read it. */
export function readIfThere(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

export function listIfThere(path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

/** The numbers of all processes of this machine. */
export function pids(): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/** A process's command line, its words separated by blanks. */
export function wordsOf(pid: number): string {
  return readIfThere(`/proc/${pid}/cmdline`).replaceAll("\0", " ").trim();
}

export function parentOf(pid: number): number {
  return Number(statOf(pid)[1]);
}

/** The children of a process, their children, and so on. */
export function descendantsOf(pid: number): readonly number[] {
  const children = new Map<number, number[]>();
  for (const each of pids()) {
    const parent = parentOf(each);
    children.set(parent, [...(children.get(parent) ?? []), each]);
  }
  const below = (parent: number): readonly number[] =>
    (children.get(parent) ?? []).flatMap((child) => [child, ...below(child)]);
  return below(pid);
}

/** One line: number, state, the kernel function that it waits in, command line. */
export function describeProcess(pid: number): string {
  const [state = "gone"] = statOf(pid);
  const waitsIn = readIfThere(`/proc/${pid}/wchan`);
  return `  ${pid} ${state} ${waitsIn === "" ? "-" : waitsIn} ${wordsOf(pid).slice(0, 300)}`;
}

/** Identifies a process by pid and start time, because the kernel reuses pids. Null if it has ended, or is a zombie. */
export function identify(pid: number): string | null {
  const { 0: state = "X", 19: started } = statOf(pid);
  return started === undefined || "ZX".includes(state) ? null : `${pid} ${started}`;
}

/** Kills these processes. All are identified first, since the pid of one that ends meanwhile can be reused. */
export function killAll(all: readonly number[]): void {
  for (const identity of all.map(identify)) if (identity !== null) killIdentified(identity);
}

/** Kills a process, unless another has its number meanwhile. */
function killIdentified(identity: string): void {
  const pid = Number(identity.split(" ")[0]);
  try {
    if (identify(pid) === identity) process.kill(pid, "SIGKILL");
  } catch {
    // It has ended meanwhile.
  }
}

/** The fields of /proc/PID/stat behind the program's name, which may itself contain blanks and parentheses. */
export function statOf(pid: number): readonly string[] {
  const stat = readIfThere(`/proc/${pid}/stat`);
  return stat === "" ? [] : stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}
