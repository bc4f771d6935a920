import { type Dirent, lstatSync, readdirSync } from "node:fs";
import type { Repositories } from "./survey.ts";

/** The look is taken at each start, so it must cost next to nothing. */
const mostDirectories = 150;
const deepest = 2;

/** In each directory of the first level two names are looked for and nothing is listed, so that many more are no burden. */
const mostOfFirstLevel = 2_000;

/** Afterwards it may cost more: an agent makes directories by the hundred. */
const mostAfterwards = 5_000;

/** A short look, level by level, until there is too much to look at. */
export function lookForRepositories(workspace: string): Repositories {
  return look(workspace, deepest, mostDirectories);
}

/** The same as far as before; null if there are too many directories for that. */
export function lookAgain(workspace: string, { depth }: Repositories): readonly string[] | null {
  const again = look(workspace, depth, mostAfterwards);
  return again.depth === depth ? again.paths : null;
}

function look(workspace: string, mostLevels: number, most: number): Repositories {
  const paths: string[] = [];
  let ahead: readonly string[] = [workspace];
  let looked = 0;
  for (let depth = 0; ; depth++) {
    paths.push(...ahead.filter(isRepository));
    looked += ahead.length;
    if (depth === mostLevels || (depth > 0 && looked > most)) return { paths: paths.sort(), depth };
    ahead = ahead.flatMap((directory) =>
      (namesIn(directory) ?? []).filter(isOfInterest).map(({ name }) => `${directory}/${name}`),
    );
    if (looked + ahead.length > (depth === 0 ? mostOfFirstLevel : most)) return { paths: paths.sort(), depth };
  }
}

/** Podbot itself holds `.git` as an empty directory, for git to pass over. */
function isRepository(directory: string): boolean {
  return isBare(directory) || (has(directory, ".git") && namesIn(`${directory}/.git`)?.length !== 0);
}

function isBare(directory: string): boolean {
  return has(directory, "HEAD") && has(directory, "refs") && (has(directory, "objects") || has(directory, "commondir"));
}

/** What cannot be looked at is no repository to git either. */
function has(directory: string, name: string): boolean {
  try {
    return lstatSync(`${directory}/${name}`, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false;
  }
}

function namesIn(directory: string): readonly Dirent[] | null {
  try {
    return readdirSync(directory, { withFileTypes: true });
  } catch {
    return null;
  }
}

function isOfInterest(entry: Dirent): boolean {
  return entry.isDirectory() && entry.name !== ".git" && entry.name !== "node_modules";
}
