import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Far more than a plan has. What is longer is not Podbot's. */
const mostBytes = 256 * 1024;

/** Paths of one image that are no links. An image's id is that of its content, so what was seen once stays true. */
export interface KnownWays {
  has(path: string): boolean;
  add(paths: readonly string[]): void;
}

/** Remembered in Podbot's own directory, where no agent can write. Where that fails, the engine is asked once more. */
export function knownWays(directory: string, imageId: string): KnownWays {
  const file = join(directory, `${createHash("sha256").update(imageId).digest("hex")}.json`);
  const known = new Set(read(file));
  return {
    has: (path) => known.has(path),
    add(paths) {
      for (const path of paths) known.add(path);
      write(directory, file, [...known]);
    },
  };
}

function read(file: string): readonly string[] {
  try {
    if (statSync(file).size > mostBytes) return [];
    const paths: unknown = JSON.parse(readFileSync(file, "utf8"));
    return Array.isArray(paths) && paths.every((path) => typeof path === "string") ? paths : [];
  } catch {
    return [];
  }
}

function write(directory: string, file: string, paths: readonly string[]): void {
  const fresh = `${file}.${randomBytes(6).toString("hex")}`;
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    writeFileSync(fresh, JSON.stringify(paths), { flag: "wx", mode: 0o600 });
    renameSync(fresh, file);
  } catch {
    // It only saves time.
  }
}
