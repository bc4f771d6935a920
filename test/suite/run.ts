import { randomInt } from "node:crypto";
import { chmodSync, lstatSync, mkdirSync, readdirSync, readlinkSync, rmdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { identify } from "./read.ts";
import { noteMissing } from "./shared-directories.ts";

/** The directory of a run lies here. Only the tests of this module have another place, where no other run looks. */
const standardPlace = "/var/tmp";
const prefix = "podbot-run-";

/** A process belongs to a run if its environment has this variable with the run's id, or any path in the run's directory. */
const mark = "PODBOT_TEST_RUN";

/** One run of the tests. Everything that it creates lies in one directory, or bears the run's id in its name. */
export interface Run {
  readonly id: string;
  readonly directory: string;
  /**
   * TMPDIR of the tests. It lies below /var/tmp because a sandbox has its own /tmp, which would hide the files from
   * the test.
   */
  readonly temporary: string;
  /** Has a file for each worker of Vitest's, named by its pid, with the path of the test file that it runs. */
  readonly workers: string;
  /** For every process that is started for it. */
  readonly env: Readonly<Record<string, string>>;
}

declare module "vitest" {
  interface ProvidedContext {
    run: Run;
  }
}

export function newRun(place = standardPlace): Run {
  const id = Array.from({ length: 6 }, () => "abcdefghjkmnpqrstuvwxyz".charAt(randomInt(23))).join("");
  const run = runOf(id, place);
  mkdirSync(run.directory, { mode: 0o755 });
  try {
    setOwner(run, ownMark());
    noteMissing(run.directory);
    mkdirSync(run.workers);
    mkdirSync(run.temporary);
    // Some tests go on as another user.
    chmodSync(run.temporary, 0o1777);
    return run;
  } catch (error) {
    rmSync(run.directory, { recursive: true, force: true });
    // Another run has just started, and has taken this empty directory for a dead run's.
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return newRun(place);
    throw error;
  }
}

/** Makes this process and its children part of the run. */
export function enterRun(run: Run): void {
  Object.assign(process.env, { TMPDIR: run.temporary, ...run.env });
}

/** The run that this process has made and entered, or null. */
export function currentRun(): Run | null {
  const run = runOf(process.env[mark] ?? "");
  return ownerOf(run) === ownMark() ? run : null;
}

/** A link, because it appears with its content or not at all, also on a full disk. */
export function setOwner(run: Run, owner: string): void {
  symlinkSync(owner, join(run.directory, ownerName));
}

/** Goes last when a run is removed: until then the next run finds the directory. */
export const ownerName = "owner";

/** Runs of this user whose main process has ended. */
export function deadRuns(place = standardPlace): readonly Run[] {
  return ownRuns(place).filter((run) => {
    const owner = ownerOf(run);
    if (owner === null) removeIfEmpty(run.directory);
    return owner !== null && !isAlive(owner);
  });
}

/** Runs of this user that are going on, other than this one. */
export function otherRuns({ id }: Run): readonly Run[] {
  return ownRuns(standardPlace).filter((run) => run.id !== id && isGoingOn(run));
}

/** Runs of any user that are going on, and to which this process does not belong. */
export function foreignRuns(): readonly Run[] {
  return runs(standardPlace).filter((run) => run.id !== process.env[mark] && isGoingOn(run));
}

function isGoingOn(run: Run): boolean {
  const owner = ownerOf(run);
  return owner !== null && isAlive(owner);
}

/** The ordinary user of a run of the slow suite. */
export function accountOf(run: Run): string {
  return `podbot-${run.id}`;
}

function runs(place: string): readonly Run[] {
  return readdirSync(place)
    .filter((name) => name.startsWith(prefix))
    .map((name) => runOf(name.slice(prefix.length), place));
}

function ownRuns(place: string): readonly Run[] {
  return runs(place).filter(({ directory }) => {
    const stats = lstatSync(directory, { throwIfNoEntry: false });
    return stats?.isDirectory() && stats.uid === process.getuid?.();
  });
}

function ownerOf({ directory }: Run): string | null {
  try {
    return readlinkSync(join(directory, ownerName));
  } catch {
    return null;
  }
}

/** A run that was killed before it set its owner leaves an empty directory. */
function removeIfEmpty(directory: string): void {
  try {
    rmdirSync(directory);
  } catch {
    // It is not empty, or another user's.
  }
}

/** Pid, start time and PID namespace of this process. */
function ownMark(): string {
  return `${identify(process.pid)} ${pidNamespace()}`;
}

/** A process of another PID namespace cannot be looked at, so its run counts as alive. */
function isAlive(owner: string): boolean {
  const [pid, started, namespace] = owner.split(" ");
  return namespace !== pidNamespace() || identify(Number(pid)) === `${pid} ${started}`;
}

function pidNamespace(): string {
  return readlinkSync("/proc/self/ns/pid");
}

function runOf(id: string, place = standardPlace): Run {
  const directory = join(place, prefix + id);
  const workers = join(directory, "workers");
  return { id, directory, temporary: join(directory, "tmp"), workers, env: { [mark]: id } };
}
