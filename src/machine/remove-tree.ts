import { spawnSync } from "node:child_process";
import { lstatSync, rmSync } from "node:fs";
import { findOnPath, systemPath } from "./programs.ts";

/**
 * Removes what lies at a path; of links, only the link. An agent may have left directories that nobody may enter, and
 * some so deep that no path leads to their end: the system's own programs get there.
 */
export function removeTree(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true, maxRetries: 3, retryDelay: 10 });
  } catch (error) {
    for (const [name, ...words] of stubborn) run(name, [...words, "--", path]);
    if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) throw error;
  }
}

/** Neither follows a link that it meets on the way down. */
const stubborn = [
  ["chmod", "-R", "u+rwX"],
  ["rm", "-rf"],
] as const;

function run(name: string, words: readonly string[]): void {
  const program = findOnPath(name, systemPath(""));
  if (program !== null) spawnSync(program, words, { cwd: "/", env: {}, stdio: "ignore" });
}
