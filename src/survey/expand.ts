import { readdirSync } from "node:fs";
import { FilesystemError, PolicyError } from "../errors.ts";
import { isGlob, segmentMatcher } from "../policy/glob.ts";
import type { Reader } from "./reader.ts";

/** A pattern that would read more names than this is a mistake, and half an answer would be a hole. */
const mostNames = 200_000;

/** The existing paths that a pattern stands for, with links resolved. */
export function expandPattern(pattern: string, glob: boolean, reader: Reader): readonly string[] {
  if (!glob) {
    const resolved = reader.resolve(pattern);
    return resolved === null ? [] : [resolved];
  }
  const resolved = walk(pattern)
    .map((path) => reader.resolve(path))
    .filter((path) => path !== null);
  return [...new Set(resolved)].sort();
}

function walk(pattern: string): readonly string[] {
  const budget = { left: mostNames };
  let reached: readonly string[] = [""];
  const segments = pattern.split("/").slice(1);
  segments.forEach((segment, at) => {
    const last = at === segments.length - 1;
    if (segment === "**") reached = reached.flatMap((path) => [path, ...descend(path, pattern, budget)]);
    else if (isGlob(segment)) reached = reached.flatMap((path) => matching(path, segment, pattern, last, budget));
    else reached = reached.map((path) => `${path}/${segment}`);
  });
  return reached;
}

function matching(
  directory: string,
  segment: string,
  pattern: string,
  last: boolean,
  budget: { left: number },
): readonly string[] {
  const matcher = segmentMatcher(segment, pattern);
  return list(directory, pattern, budget)
    .filter((entry) => matcher.test(entry.name) && (last || entry.isDirectory() || entry.isSymbolicLink()))
    .map((entry) => `${directory}/${entry.name}`);
}

/** Every directory below; links are not followed, so the walk ends. */
function descend(directory: string, pattern: string, budget: { left: number }): readonly string[] {
  return list(directory, pattern, budget)
    .filter((entry) => entry.isDirectory())
    .flatMap((entry) => {
      const path = `${directory}/${entry.name}`;
      return [path, ...descend(path, pattern, budget)];
    });
}

function list(directory: string, pattern: string, budget: { left: number }) {
  try {
    const entries = readdirSync(directory === "" ? "/" : directory, { withFileTypes: true });
    budget.left -= entries.length;
    if (budget.left < 0) throw tooMany(pattern);
    if (entries.some(({ name }) => name.includes("\ufffd"))) throw unspeakable(pattern, directory);
    return entries;
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code;
    if (cause instanceof PolicyError) throw cause;
    if (code === "ENOENT" || code === "ENOTDIR" || code === "EACCES") return [];
    throw new FilesystemError("FILESYSTEM", `Expanding ${JSON.stringify(pattern)} failed in ${directory}`, { cause });
  }
}

/** A name that is not UTF-8 cannot be named again, so a rule that should hold for it would not. */
function unspeakable(pattern: string, directory: string): PolicyError {
  return new PolicyError(
    "PATTERN_INVALID",
    `The pattern ${JSON.stringify(pattern)} meets a name in ${directory} that is not UTF-8.`,
    {
      hint: "Rename it, or name the directory more precisely.",
      details: { pattern, directory },
    },
  );
}

function tooMany(pattern: string): PolicyError {
  return new PolicyError(
    "PATTERN_INVALID",
    `The pattern ${JSON.stringify(pattern)} reads more than ${mostNames} names.`,
    {
      hint: "Name the directory more precisely.",
      details: { pattern },
    },
  );
}
