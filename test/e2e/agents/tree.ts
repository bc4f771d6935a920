import { createHash } from "node:crypto";
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";

/** Everything below a directory but what lies at or below some paths: each with its mode and a digest of its content. */
export function treeOf(root: string, without: readonly string[]): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  const walk = (path: string) => {
    for (const name of readdirSync(join(root, path)).toSorted()) {
      const at = join(path, name);
      if (without.includes(at)) continue;
      found[at] = describe(join(root, at));
      if (lstatSync(join(root, at)).isDirectory()) walk(at);
    }
  };
  walk("");
  return found;
}

function describe(path: string): string {
  const stat = lstatSync(path);
  const mode = stat.mode.toString(8);
  if (stat.isSymbolicLink()) return `${mode} -> ${readlinkSync(path)}`;
  if (!stat.isFile()) return mode;
  return `${mode} ${createHash("sha256").update(readFileSync(path)).digest("hex")}`;
}
