import { type Dirent, readdirSync } from "node:fs";
import { isEmptyDirectory } from "./git-bare.ts";
import type { Repositories } from "./survey.ts";

/** The look is taken at each start and each end, so it must cost next to nothing. */
const mostDirectories = 150;
const deepest = 2;

/** A short look, level by level, until there is too much to look at. */
export function lookForRepositories(workspace: string, mostLevels = deepest): Repositories {
  const paths: string[] = [];
  let ahead: readonly string[] = [workspace];
  let looked = 0;
  for (let depth = 0; ; depth++) {
    const levels = ahead.map((directory) => ({ directory, entries: listed(directory) }));
    paths.push(
      ...levels.filter(({ directory, entries }) => isRepository(directory, entries)).map((at) => at.directory),
    );
    looked += ahead.length;
    ahead = levels.flatMap(({ directory, entries }) =>
      entries.filter(isOfInterest).map(({ name }) => `${directory}/${name}`),
    );
    if (depth === mostLevels || looked + ahead.length > mostDirectories) return { paths: paths.sort(), depth };
  }
}

/** Podbot itself holds `.git` as an empty directory, for git to pass over. */
function isRepository(directory: string, entries: readonly Dirent[]): boolean {
  const names = new Set(entries.map(({ name }) => name));
  const isBare = names.has("HEAD") && names.has("refs") && (names.has("objects") || names.has("commondir"));
  return isBare || (names.has(".git") && !isEmptyDirectory(`${directory}/.git`));
}

function isOfInterest(entry: Dirent): boolean {
  return entry.isDirectory() && entry.name !== ".git" && entry.name !== "node_modules";
}

/** The look only tells of what there is: what is closed now protects nothing, and stops nothing. */
function listed(directory: string): readonly Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true });
  } catch {
    return [];
  }
}
