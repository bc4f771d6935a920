import { normalize } from "node:path";
import { PolicyError } from "../errors.ts";

/** Where `~` and relative paths point to. */
export interface Standpoint {
  readonly home: string;
  readonly cwd: string;
}

/** `~` and relative paths become absolute. Variables are not expanded: a policy says what it says. */
export function expandPath(written: string, from: Standpoint): string {
  if (written === "") throw refused(written, "it is empty", "Name a path, or leave the rule out.");
  if (written.includes("\0")) throw refused(written, "it holds a NUL byte", "Remove the NUL byte.");
  if (written.startsWith("~") && written !== "~" && !written.startsWith("~/")) {
    throw refused(written, "`~user` is not understood", "Write the absolute path of that user's home.");
  }
  const homed = written === "~" ? from.home : written.startsWith("~/") ? from.home + written.slice(1) : written;
  const absolute = homed.startsWith("/") ? homed : `${from.cwd}/${homed}`;
  // Presets name a hundred paths at every start, nearly all of them plain.
  return /\/(\.{0,2}(\/|$))/.test(absolute) ? withoutTrailingSlash(normalize(absolute)) : absolute;
}

function refused(written: string, why: string, hint: string): PolicyError {
  return new PolicyError("PATH_REFUSED", `The path ${JSON.stringify(written)} cannot be used: ${why}.`, { hint });
}

function withoutTrailingSlash(path: string): string {
  return path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path;
}

/** True for the directory itself and for all below it. */
export function isWithin(path: string, directory: string): boolean {
  return path === directory || isBelow(path, directory);
}

/** True only for what lies below the directory. */
export function isBelow(path: string, directory: string): boolean {
  return path !== directory && path.startsWith(directory === "/" ? "/" : `${directory}/`);
}

export function parentOf(path: string): string {
  const slash = path.lastIndexOf("/");
  return slash <= 0 ? "/" : path.slice(0, slash);
}

export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

export function depthOf(path: string): number {
  let depth = 0;
  for (let at = path.indexOf("/"); at >= 0 && at < path.length - 1; at = path.indexOf("/", at + 1)) depth++;
  return depth;
}

/** The directories strictly between an ancestor and a path below it, outermost first. */
export function directoriesBetween(ancestor: string, path: string): readonly string[] {
  const between: string[] = [];
  for (let at = parentOf(path); isBelow(at, ancestor); at = parentOf(at)) between.unshift(at);
  return between;
}

/** Parents before children, then by name: the order in which mounts may be laid on each other. */
export function byDepth(a: string, b: string): number {
  return depthOf(a) - depthOf(b) || (a < b ? -1 : a > b ? 1 : 0);
}
