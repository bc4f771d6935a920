import { fstatSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { FilesystemError, PodbotError, WallError } from "../errors.ts";
import { thisHost } from "../machine/host.ts";
import { remove, withLock } from "../machine/lock.ts";
import { isRunning, type OwnMark, ownMark, processSpace } from "../machine/process.ts";
import type { HeldName } from "../plan/plan.ts";
import { findPlaceholder, makePlaceholder, openPlace, type Place, removePlaceholder } from "./placeholder.ts";

/** Who holds which names. Written before they are made, so that a crash leaves a record and not a riddle. */
interface Claim {
  readonly pid: number;
  readonly started: string;
  /** In which pid namespace, of which boot: elsewhere, a pid says nothing. */
  readonly space: string;
  readonly names: readonly HeldName[];
}

export interface Holding extends Disposable {
  /** What the names stand for that were made, or that another sandbox has made: `dev:ino` by path. */
  readonly identities: ReadonlyMap<string, string>;
  /** Names that could not be made, since nobody of this user may: then nobody inside may either. */
  readonly impossible: ReadonlySet<string>;
}

/**
 * Makes the names that must not come into being inside, and removes them when the last sandbox that needs them is
 * gone. Removing a name drops the mounts that other sandboxes have on it, so what another one holds is shared.
 */
export function holdNames(directory: string, names: readonly HeldName[], mounted: readonly string[]): Holding {
  // Most sandboxes hold something. For those that do not, and find nobody else, there is nothing to keep apart.
  if (names.length === 0 && claims(directory).length === 0) return nothingHeld;
  const me = ownMark();
  return locked(directory, me, () => hold(directory, me, names, mounted));
}

const nothingHeld: Holding = { identities: new Map(), impossible: new Set(), [Symbol.dispose]() {} };

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

function isUntouched(name: HeldName): boolean {
  try {
    using place = openPlace(name);
    return findPlaceholder(place, name) !== null;
  } catch (error) {
    // About to be made, or just removed.
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
}

function hold(directory: string, me: OwnMark, names: readonly HeldName[], mounted: readonly string[]): Holding {
  const { pid } = me;
  const known = claims(directory);
  const theirs = known.flatMap(({ claim }) => claim.names);
  const shared = theirs.filter(({ path }) => mounted.includes(path));
  const places = new Places();
  const file = join(directory, `${pid}-${nextNumber(known, pid)}.json`);
  const release = (held: readonly HeldName[]) => {
    const others = claims(directory).filter((other) => other.file !== file);
    if (drop(held, others, places)) remove(file);
    places[Symbol.dispose]();
  };
  const made: HeldName[] = [...shared];
  try {
    const found = names.map((name) => ({ ...name, directory: places.of(name).identity }));
    // Each name once: several others may share it, and each of them with the rest.
    const mine = [...new Map([...shared, ...found].map((name) => [name.path, name])).values()];
    if (mine.length > 0) record(file, me, mine);
    // Only now: what a dead Podbot left and this plan mounts has become ours.
    if (known.length > 0) sweep(directory);
    if (mine.length === 0) return nothingHeld;
    const impossible = new Set<string>();
    const identities = new Map<string, string>();
    for (const name of found) {
      const identity = make(places.of(name), name, theirs);
      if (identity === null) impossible.add(name.path);
      else {
        made.push(name);
        identities.set(name.path, identity);
      }
    }
    return { identities, impossible, [Symbol.dispose]: () => locked(directory, me, () => release(mine)) };
  } catch (error) {
    // What stood there already is not ours to remove.
    release(made);
    throw error;
  }
}

/** The directories of held names: each is opened once, and stays open until the names are removed. */
class Places implements Disposable {
  readonly #open = new Map<string, Place>();

  of(name: HeldName): Place {
    const known = this.find(name);
    if (known !== undefined) return known;
    try {
      const place = openPlace(name);
      this.#open.set(dirname(name.path), place);
      return place;
    } catch (cause) {
      throw changed(name.path, cause);
    }
  }

  find({ path }: HeldName): Place | undefined {
    return this.#open.get(dirname(path));
  }

  [Symbol.dispose](): void {
    for (const place of this.#open.values()) place[Symbol.dispose]();
    this.#open.clear();
  }
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

/** Returns what the name stands for then; null where no program of this user may make it. */
function make(place: Place, name: HeldName, others: readonly HeldName[]): string | null {
  try {
    return makePlaceholder(place, name);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "EROFS" || ((code === "EACCES" || code === "EPERM") && !isOurs(place))) return null;
    const isTheirs = code === "EEXIST" && others.some(({ path }) => path === name.path);
    const identity = isTheirs ? findPlaceholder(place, name) : null;
    if (identity === null) throw changed(name.path, cause);
    return identity;
  }
}

function changed(path: string, cause: unknown): WallError {
  return new WallError("PATH_CHANGED", `${path} changed between the plan and the start: it could not be held.`, {
    hint: "Nothing was started. Start again.",
    details: { path },
    cause,
  });
}

/** The owner of a directory can make it writable again, inside too. */
function isOurs({ descriptor }: Place): boolean {
  return fstatSync(descriptor).uid === thisHost().uid;
}

/**
 * Removes names that nobody holds any more, if they are still as they were made. False where one could not be removed
 * now: then the claim stays, for a later try.
 */
function drop(
  names: readonly HeldName[],
  others: readonly { readonly claim: Claim }[],
  places: Pick<Places, "find"> = { find: () => undefined },
): boolean {
  let done = true;
  const needed = new Set(others.flatMap(({ claim }) => claim.names.map(({ path }) => path)));
  for (const name of [...names].reverse()) {
    if (needed.has(name.path)) continue;
    try {
      const known = places.find(name);
      using opened = known === undefined ? openPlace(name) : null;
      removePlaceholder(known ?? (opened as Place), name);
    } catch (error) {
      // Otherwise it is gone already, or put to use by the owner in the meantime, or its directory was moved: theirs now.
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
