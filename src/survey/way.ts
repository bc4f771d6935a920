import { readlinkSync } from "node:fs";
import { PolicyError } from "../errors.ts";
import { parentOf } from "../policy/paths.ts";
import type { Reader } from "./reader.ts";

/** How the kernel gets to the end of a path. */
export interface Way {
  /** Where it leads; null where a name on it is missing. */
  readonly end: string | null;
  /** The first name that is missing, in a resolved directory, and whether the path ends there. */
  readonly missing: { readonly path: string; readonly isLast: boolean } | null;
  /** Links on the way, and directories that it leaves by `..`: it ends elsewhere if one of them is replaced. */
  readonly steps: readonly string[];
}

/** As many as the kernel follows. */
const mostLinks = 40;

/** Goes an absolute path name by name. `a/../b` is not `b` where `a` is a link, so nothing is shortened before. */
export function findWay(path: string, reader: Reader): Way {
  const ahead = namesOf(path, path);
  const steps: string[] = [];
  let at = "/";
  let links = 0;
  /** How many directories were entered that `..` has not left again; what a link leaves goes with the link. */
  let entered = 0;
  for (let name = ahead.shift(); name !== undefined; name = ahead.shift()) {
    if (name === "..") {
      if (entered > 0) steps.push(at);
      entered = Math.max(0, entered - 1);
      at = parentOf(at);
      continue;
    }
    const here = at === "/" ? `/${name}` : `${at}/${name}`;
    const node = reader.look(here);
    if (node === null) return { end: null, missing: { path: here, isLast: ahead.length === 0 }, steps };
    if (node.kind !== "link") {
      at = here;
      entered += 1;
      continue;
    }
    steps.push(here);
    entered = 0;
    links += 1;
    // In a circle there is no place where anything could be put.
    if (links > mostLinks) return { end: null, missing: null, steps };
    const to = targetOf(here, path);
    if (to.startsWith("/")) at = "/";
    ahead.unshift(...namesOf(to, path));
  }
  return { end: at, missing: null, steps };
}

function targetOf(link: string, path: string): string {
  try {
    return readlinkSync(link);
  } catch (cause) {
    throw new PolicyError("PATH_REFUSED", `${link}, on the way of ${path}, cannot be read as a link.`, {
      hint: "Nothing was started. Find out what changes it, then start again.",
      details: { path: link },
      cause,
    });
  }
}

function namesOf(path: string, asked: string): string[] {
  refuseUnreadable(path, asked);
  return path.split("/").filter((name) => name !== "" && name !== ".");
}

/** Node reads a name that is not UTF-8 as another one. That would be missing, and what it means would be unprotected. */
export function refuseUnreadable(path: string, asked: string): void {
  if (!path.includes("\ufffd")) return;
  throw new PolicyError("PATH_REFUSED", `${JSON.stringify(asked)} leads to a name that is not UTF-8: ${path}`, {
    hint: "Rename what is meant, so that it can be protected, and correct what names it.",
    details: { path: asked },
  });
}
