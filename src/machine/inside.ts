import { existsSync, readFileSync } from "node:fs";

/** What a sandbox says of itself, or null outside of one. */
export interface Inside {
  readonly wall: string;
  readonly root: string;
  readonly network: string;
}

/**
 * Whether this process runs in one of Podbot's sandboxes. The sign lies on a read-only mount at a place where only
 * root could put one, so nobody inside can remove it and nobody outside can forge it.
 */
export function detectSandbox(): Inside | null {
  const sign = "/run/podbot/sandbox.json";
  // Outside, where this is asked at every start, one look is enough.
  if (!existsSync(sign)) return null;
  try {
    const mounts = readFileSync("/proc/self/mountinfo", "utf8");
    if (!mounts.split("\n").some((line) => / \/run\/podbot ro[ ,]/.test(line))) return null;
    const { inside, wall, root, network } = JSON.parse(readFileSync(sign, "utf8"));
    return inside === true ? { wall, root, network } : null;
  } catch {
    return null;
  }
}
