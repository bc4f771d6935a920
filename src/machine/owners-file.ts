import { lstatSync, readlinkSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { readPlainFile } from "./plain-file.ts";

/** Whether an agent may write what lies at a path, or put something else there. */
export type IsWritable = (path: string) => boolean;

/** Where a path leads to. `agents`: an agent has a say in it, by what it may have put at `at`. */
export type Way =
  | { readonly kind: "owners"; readonly path: string }
  | { readonly kind: "agents"; readonly at: string }
  | { readonly kind: "nowhere" };

/** As many as the kernel follows. */
const mostLinks = 40;

/**
 * Goes the way of a path step by step, as the kernel does. A step that an agent may write leads wherever the agent
 * likes, be it a directory, a link, or what a link of the owner's leads to: so every one of them is judged.
 */
export function followWay(path: string, isWritable: IsWritable): Way {
  const ahead = namesOf(resolve(path));
  let at = "/";
  let links = 0;
  for (let name = ahead.shift(); name !== undefined; name = ahead.shift()) {
    if (name === "..") {
      at = dirname(at);
      continue;
    }
    const step = join(at, name);
    if (isWritable(step)) return { kind: "agents", at: step };
    const to = linkAt(step);
    if (to === undefined) return { kind: "nowhere" };
    if (to === null) {
      at = step;
      continue;
    }
    links += 1;
    if (links > mostLinks) return { kind: "nowhere" };
    if (to.startsWith("/")) at = "/";
    ahead.unshift(...namesOf(to));
  }
  return { kind: "owners", path: at };
}

function namesOf(path: string): string[] {
  return path.split("/").filter((name) => name !== "" && name !== ".");
}

/** What a link says; null for what is none, undefined where there is nothing that could be seen. */
function linkAt(path: string): string | null | undefined {
  try {
    return lstatSync(path).isSymbolicLink() ? readlinkSync(path) : null;
  } catch {
    return undefined;
  }
}

export type OwnersFile =
  | { readonly kind: "owners"; readonly path: string; readonly bytes: Buffer }
  | Exclude<Way, { readonly kind: "owners" }>;

/**
 * What a file of the owner's holds. What is not a plain file, or is larger than it may be, counts as missing: pipes and
 * devices can keep whoever reads them for ever.
 */
export function readOwnersFile(path: string, isWritable: IsWritable, largest: number): OwnersFile {
  const way = followWay(path, isWritable);
  if (way.kind !== "owners") return way;
  const file = readPlainFile(way.path, largest);
  return file.kind === "read" ? { ...way, bytes: file.bytes } : { kind: "nowhere" };
}
