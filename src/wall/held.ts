import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { FilesystemError, PodbotError, WallError } from "../errors.ts";
import { thisHost } from "../machine/host.ts";
import { remove, withLock } from "../machine/lock.ts";
import { isRunning, type OwnMark, ownMark, processSpace } from "../machine/process.ts";
import type { HeldName } from "../plan/plan.ts";

/** Who holds which names. Written before they are made, so that a crash leaves a record and not a riddle. */
interface Claim {
  readonly pid: number;
  readonly started: string;
  /** In which pid namespace, of which boot: elsewhere, a pid says nothing. */
  readonly space: string;
  readonly names: readonly HeldName[];
}

export interface Holding extends Disposable {
  /** Names that could not be made, since nobody of this user may: then nobody inside may either. */
  readonly impossible: ReadonlySet<string>;
}

/**
 * Makes the names that must not come into being inside, and removes them when the last sandbox that needs them is
 * gone. Removing a name drops the mounts that other sandboxes have on it, so what another one holds is shared.
 */
export function holdNames(directory: string, names: readonly HeldName[], mounted: readonly string[]): Holding {
  // Most sandboxes hold something. For those that do not, and find nobody else, there is nothing to keep apart.
  if (names.length === 0 && claims(directory).length === 0) return { impossible: new Set(), [Symbol.dispose]() {} };
  const me = ownMark();
  return locked(directory, me, () => hold(directory, me, names, mounted));
}

/**
 * Looks at the machine with what stands where it does only because a sandbox holds it. That may be gone in a moment, so
 * whoever plans another one takes it for missing: then it is held for that one, too. Where a sandbox has begun or ended
 * meanwhile, a name of its own may have been taken for the owner's, and it is looked again.
 */
export function lookBesideOthers<T>(directory: string, look: (held: ReadonlySet<string>) => T): T {
  for (let left = mostLooks; ; left--) {
    const before = stampOf(directory);
    const seen = look(namesHeld(directory));
    if (left === 1 || stampOf(directory) === before) return seen;
  }
}

/** Sandboxes that begin and end all the time must not keep another from beginning. */
const mostLooks = 5;

/** Another one when a claim was made or dropped, be it both. */
function stampOf(directory: string): string {
  const changed = statSync(directory, { bigint: true, throwIfNoEntry: false })?.mtimeNs;
  return [changed, ...filesIn(directory).filter(isClaim)].join(" ");
}

function namesHeld(directory: string): ReadonlySet<string> {
  const names = claims(directory).flatMap(({ claim }) => claim.names);
  return new Set(names.filter(isUntouched).map(({ path }) => path));
}

function isUntouched({ path, placeholder }: HeldName): boolean {
  try {
    if (placeholder.kind === "directory") return readdirSync(path).length === 0;
    return isOwnContent(path, placeholder.content);
  } catch (error) {
    // About to be made, or just removed.
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
}

/** Who is killed between making a file and filling it leaves it empty. */
function isOwnContent(path: string, content: string): boolean {
  const found = readFileSync(path, "utf8");
  return found === content || found === "";
}

function hold(directory: string, me: OwnMark, names: readonly HeldName[], mounted: readonly string[]): Holding {
  const { pid } = me;
  const known = claims(directory);
  const theirs = known.flatMap(({ claim }) => claim.names);
  const shared = theirs.filter(({ path }) => mounted.includes(path));
  // Each name once: several others may share it, and each of them with the rest.
  const mine = [...new Map([...shared, ...names].map((name) => [name.path, name])).values()];
  const impossible = new Set<string>();
  const file = join(directory, `${pid}-${nextNumber(known, pid)}.json`);
  if (mine.length > 0) record(file, me, mine);
  // Only now: what a dead Podbot left and this plan mounts has become ours.
  if (known.length > 0) sweep(directory);
  if (mine.length === 0) return { impossible, [Symbol.dispose]() {} };
  const release = (held: readonly HeldName[]) => {
    const others = claims(directory).filter((other) => other.file !== file);
    if (drop(held, others)) remove(file);
  };
  const made: HeldName[] = [...shared];
  try {
    for (const name of names) {
      if (make(name, theirs)) made.push(name);
      else impossible.add(name.path);
    }
  } catch (error) {
    // What stood there already is not ours to remove.
    release(made);
    throw error;
  }
  return { impossible, [Symbol.dispose]: () => locked(directory, me, () => release(mine)) };
}

/** Between looking at what others hold and acting on it, nobody else may do either. */
function locked<T>(directory: string, me: OwnMark, work: () => T): T {
  try {
    return withLock(join(directory, "lock"), me, work);
  } catch (cause) {
    if (cause instanceof PodbotError) throw cause;
    throw unwritable(directory, cause);
  }
}

function record(file: string, me: OwnMark, names: readonly HeldName[]): void {
  const claim: Claim = { ...me, names };
  try {
    writeFileSync(`${file}.new`, JSON.stringify(claim), { mode: 0o600 });
    renameSync(`${file}.new`, file);
  } catch (cause) {
    throw unwritable(dirname(file), cause);
  }
}

function unwritable(directory: string, cause: unknown): FilesystemError {
  return new FilesystemError("FILESYSTEM", `Podbot cannot write to its state directory ${directory}.`, {
    hint: "Make it writable, with space left.",
    details: { path: directory },
    cause,
  });
}

function make({ path, placeholder }: HeldName, others: readonly HeldName[]): boolean {
  try {
    if (placeholder.kind === "directory") mkdirSync(path, { mode: 0o755 });
    else writeFileSync(path, placeholder.content, { flag: "wx", mode: 0o644 });
    return true;
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "EROFS" || ((code === "EACCES" || code === "EPERM") && !isOurs(dirname(path)))) return false;
    if (code === "EEXIST" && others.some((name) => name.path === path)) return true;
    throw new WallError("PATH_CHANGED", `${path} changed between the plan and the start: it could not be held.`, {
      hint: "Nothing was started. Start again.",
      details: { path },
      cause,
    });
  }
}

/** Who owns a directory can make it writable again, inside too. */
function isOurs(directory: string): boolean {
  return statSync(directory, { throwIfNoEntry: false })?.uid === thisHost().uid;
}

/**
 * Removes names that nobody holds any more, if they are still as they were made. False where one could not be removed
 * now: then the claim stays, for a later try.
 */
function drop(names: readonly HeldName[], others: readonly { readonly claim: Claim }[]): boolean {
  let done = true;
  const needed = new Set(others.flatMap(({ claim }) => claim.names.map(({ path }) => path)));
  for (const { path, placeholder } of [...names].reverse()) {
    if (needed.has(path)) continue;
    try {
      if (placeholder.kind === "directory") rmdirSync(path);
      else if (isOwnContent(path, placeholder.content)) unlinkSync(path);
    } catch (error) {
      // Otherwise it is gone already, or put to use by the owner in the meantime: theirs now.
      const { code } = error as NodeJS.ErrnoException;
      if (code === "EACCES" || code === "EPERM" || code === "EBUSY") done = false;
    }
  }
  return done;
}

/** Finishes what a killed Podbot could not. */
export function sweepHeld(directory: string): void {
  if (filesIn(directory).length > 0) locked(directory, ownMark(), () => sweep(directory));
}

function sweep(directory: string): void {
  // Under the lock nobody is writing these: they are what a kill left of a claim that never was.
  for (const name of filesIn(directory)) if (name.endsWith(".json.new")) rmSync(join(directory, name), { force: true });
  const all = claims(directory);
  const here = processSpace();
  const dead = all.filter(({ claim }) => isDead(claim, here));
  const alive = all.filter((entry) => !dead.includes(entry));
  for (const { file, claim } of dead) {
    if (drop(claim.names, alive)) rmSync(file, { force: true });
  }
}

/** Of a process in another pid namespace (a container that shares the home) only a new boot proves the end. */
function isDead({ pid, started, space }: Claim, here: string): boolean {
  if (space === here) return !isRunning(pid, started);
  return space?.split(" ")[0] !== here.split(" ")[0];
}

function isClaim(name: string): boolean {
  return name.endsWith(".json");
}

function claims(directory: string): readonly { readonly file: string; readonly claim: Claim }[] {
  return filesIn(directory)
    .filter(isClaim)
    .flatMap((name) => {
      const file = join(directory, name);
      try {
        return [{ file, claim: JSON.parse(readFileSync(file, "utf8")) as Claim }];
      } catch {
        return [];
      }
    });
}

/** One process may run several sandboxes at once. */
function nextNumber(known: readonly { readonly file: string; readonly claim: Claim }[], pid: number): number {
  const taken = known.filter(({ claim }) => claim.pid === pid);
  return Math.max(-1, ...taken.map(({ file }) => Number(/-(\d+)\.json$/.exec(file)?.[1]))) + 1;
}

function filesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
