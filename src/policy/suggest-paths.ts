import { groupBy } from "./group.ts";
import { pathMatcher, segmentsOf } from "./network-paths.ts";

/** More paths than these are not listed one by one. */
const mostPaths = 5;

/**
 * A path as a rule should name it. What looks like an id becomes `*`, since the next run asks for another one; what
 * looks like a token does, since it must not be written down. The path is none of those that are spelled oddly, and has no
 * star of its own.
 */
export function patternOf(path: string): string {
  return path.split("/").map(segmentPattern).join("/");
}

function segmentPattern(segment: string): string {
  const text = decodeURIComponent(segment);
  return isId(text) || isToken(text) ? "*" : segment;
}

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const hexadecimal = /^(?=.*\d)[0-9a-f]{7,}$/i;

function isId(text: string): boolean {
  return /^\d+$/.test(text) || hexadecimal.test(text) || uuid.test(text);
}

/** How keys and tokens begin that say so themselves. */
const prefixes = /^(?:sk|pk|rk|gh[a-z]|github_pat|glpat|xox[a-z]|npm|pypi|hf|AKIA|ASIA|AIza|eyJ|bot\d+:)[-_A-Z0-9:]/;
const longest = 80;

/** Rather a name too many than a token: a star in its place allows little more. */
function isToken(text: string): boolean {
  if (text.length > longest || text.includes("[REDACTED]")) return true;
  if (text.length >= 20 && prefixes.test(text)) return true;
  // Beyond its dots and dashes, as a name of a file or a package has them.
  const runs = text.split(/[^A-Za-z0-9]+/);
  if (runs.some((run) => run.length >= 16 && isMixed(run))) return true;
  if (runs.some((run) => run.length >= 10 && countTurns(run) >= 3)) return true;
  return text.length >= 24 && /[a-z]/.test(text) && /[A-Z]/.test(text) && countTurns(text) >= 4;
}

function isMixed(run: string): boolean {
  if (/\d/.test(run)) return /[A-Za-z]/.test(run);
  // Capitals in words are few, and begin them.
  const turns = [...run.matchAll(/[a-z](?=[A-Z])|[A-Z](?=[a-z])/g)].length;
  return turns * 3 >= run.length || /^[A-Z]+$/.test(run);
}

/** How often letters and digits take turns. Words end in numbers, chance does not. */
function countTurns(text: string): number {
  return [...text.matchAll(/[A-Za-z](?=\d)|\d(?=[A-Za-z])/g)].length;
}

/** The fewest patterns that stand for all of these, and for little else. */
export function generalize(patterns: readonly string[]): readonly string[] {
  return dropCovered(patterns.length <= mostPaths ? patterns : gather(patterns));
}

/** All below what they share; where they share nothing, all below what those share that begin alike. */
function gather(patterns: readonly string[]): readonly string[] {
  const shared = sharedBeginning(patterns);
  if (shared !== "") return belowShared(patterns, shared);
  const groups = [...groupBy(patterns, (pattern) => pattern.split("/")[1] as string).values()];
  return groups.length > mostPaths
    ? ["/**"]
    : groups.flatMap((group) => (group.length === 1 ? group : belowShared(group, sharedBeginning(group))));
}

/** `/api/**` is not `/api` itself. */
function belowShared(patterns: readonly string[], shared: string): readonly string[] {
  return [...patterns.filter((pattern) => pattern === shared), `${shared}/**`];
}

/** Whole segments that all begin with: `/a/b`, or nothing. */
function sharedBeginning(patterns: readonly string[]): string {
  const [first, ...others] = patterns.map((pattern) => pattern.split("/"));
  const segments = first as readonly string[];
  const differs = segments.findIndex((segment, at) => others.some((other) => other[at] !== segment));
  return segments.slice(0, differs < 0 ? segments.length : differs).join("/");
}

function dropCovered(patterns: readonly string[]): readonly string[] {
  return patterns
    .filter((one) => !patterns.some((other) => other !== one && pathMatcher(other)(segmentsOf(one))))
    .sort();
}
