import { accessSync, constants, existsSync, mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Kind, repeatedly, startBackground } from "./disturbance.ts";

/** Names the file through which a process leaves the frozen group. */
const unfrozenGroup = "SOAK_UNFROZEN";

/** Words before a command that must not be frozen. */
export function unfrozen(): readonly string[] {
  const group = process.env[unfrozenGroup];
  return group === undefined ? [] : ["sh", "-c", 'echo $$ >"$0" && exec "$@"', group];
}

/**
 * The cgroup freezer stops all test processes at once, as an overloaded host does: many short pauses, and occasionally
 * one of up to 1.5 s.
 */
export const stall: Kind = {
  name: "stall",
  obstacle() {
    if (process.getuid?.() !== 0) return "the cgroup freezer needs root";
    const found = freezer();
    if (found === null) return "this kernel has no cgroup freezer";
    return isWritable(found.root) ? null : `${found.root} is read-only`;
  },
  async start({ chance, run }) {
    const found = freezer();
    if (found === null) throw new Error("this kernel has no cgroup freezer");
    // The name by which the next run finds it if soak is killed.
    const group = join(found.root, `podbot-${run.id}`);
    mkdirSync(group);
    // A killed soak must not leave the tests frozen: frozen processes take no signal. Its death closes this stdin.
    const thawing = ["-c", 'cat; echo "$1" >"$2"', "sh", found.thawed, join(group, found.file)];
    const thawer = startBackground("sh", thawing);
    const set = (isFrozen: boolean) => writeFileSync(join(group, found.file), isFrozen ? found.frozen : found.thawed);
    let isFrozen = false;
    const freezing = repeatedly(() => {
      isFrozen = !isFrozen;
      set(isFrozen);
      if (!isFrozen) return 50 + chance(450);
      return chance(40) === 0 ? 500 + chance(1_000) : 30 + chance(220);
    });
    return {
      prefix: ["sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', group],
      env: { [unfrozenGroup]: join(found.root, "cgroup.procs") },
      async [Symbol.asyncDispose]() {
        try {
          freezing.stop();
        } finally {
          await thawer.end();
        }
        // The suite may still be cleaning up, and the kernel may keep a group busy for a moment after its last process.
        for (const end = performance.now() + graceMs; !removed(group) && performance.now() < end; ) await sleep(100);
        if (existsSync(group)) throw new Error(`${group} is still in use: a process of the tests was left behind`);
      },
    };
  },
};

/** How long the processes in the group may take to end, on a busy machine. */
const graceMs = 30_000;

/** A group is removed like an empty directory, but only without processes. */
function removed(group: string): boolean {
  try {
    rmdirSync(group);
    return true;
  } catch {
    return !existsSync(group);
  }
}

interface Freezer {
  readonly root: string;
  readonly file: string;
  readonly frozen: string;
  readonly thawed: string;
}

/** The freezer of cgroup v1 or v2. */
function freezer(): Freezer | null {
  const first = "/sys/fs/cgroup/freezer";
  if (existsSync(join(first, "cgroup.procs")))
    return { root: first, file: "freezer.state", frozen: "FROZEN", thawed: "THAWED" };
  const second = "/sys/fs/cgroup";
  if (existsSync(join(second, "cgroup.controllers")))
    return { root: second, file: "cgroup.freeze", frozen: "1", thawed: "0" };
  return null;
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
