import { accessSync, chmodSync, constants, lstatSync, mkdirSync, type Stats, statSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { MachineError } from "../errors.ts";

export interface RuntimePlaces {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly uid: number;
  /** Podbot's state directory. */
  readonly state: string;
  /** Where the system keeps what lives until the next boot. Default: /run. */
  readonly run?: string;
}

export interface RuntimeDirectory {
  readonly path: string;
  /** What the owner should know about the place, or null. */
  readonly warning: string | null;
}

interface Place {
  readonly path: string;
  /** Whether the owner has named it, and so should hear why it is not used. */
  readonly named: boolean;
}

/** Where sessions may have their runtime directories, the best place first. Nothing is looked at. */
export function runtimeCandidates(places: RuntimePlaces): readonly string[] {
  return [...new Set([...placesInMemory(places).map(({ path }) => path), placeInState(places)])];
}

/** Those of the candidates that exist and are the caller's own: what belongs to others is not listed, let alone cleaned. */
export function existingRuntimeDirectories(places: RuntimePlaces): readonly string[] {
  return runtimeCandidates(places).filter((path) => {
    const stats = look(path, lstatSync);
    return stats?.uid === places.uid && stats.isDirectory();
  });
}

/**
 * The directory for the sockets and secrets of sessions, made where it is missing.
 *
 * A place that is absent, full, read-only or another user's own (XDG_RUNTIME_DIR after `sudo` or `su`) is passed over:
 * nothing was put there, so nothing is at risk. But where the place is ours and the name `podbot` in it is a link or
 * somebody else's, somebody is waiting for us there: that is an error, for the owner to look at.
 */
export function findRuntimeDirectory(places: RuntimePlaces): RuntimeDirectory {
  const passed: string[] = [];
  for (const { path, named } of placesInMemory(places)) {
    const obstacle = obstacleAt(dirname(path), places.uid) ?? claim(path, places.uid);
    if (obstacle === null) return { path, warning: passed.length === 0 ? null : passed.join(" ") };
    if (named) passed.push(`XDG_RUNTIME_DIR is passed over: ${obstacle}.`);
  }
  const path = placeInState(places);
  claimInState(path, places.uid);
  return { path, warning: [...passed, stateWarning(path)].join(" ") };
}

function placesInMemory({ env, uid, run = "/run" }: RuntimePlaces): readonly Place[] {
  const named = env["XDG_RUNTIME_DIR"];
  return [
    ...(named !== undefined && isAbsolute(named) ? [{ path: join(named, "podbot"), named: true }] : []),
    { path: join(run, "user", String(uid), "podbot"), named: false },
    ...(uid === 0 ? [{ path: join(run, "podbot"), named: false }] : []),
  ];
}

function placeInState({ state }: RuntimePlaces): string {
  return join(state, "run");
}

/** Why nothing of ours may lie in a directory, or null: whoever can rename in it can put theirs in place of ours. */
function obstacleAt(parent: string, uid: number): string | null {
  const stats = look(parent, statSync);
  if (stats === null) return `${parent} does not exist or cannot be reached`;
  if (!stats.isDirectory()) return `${parent} is not a directory`;
  if (stats.uid !== uid) return `${parent} belongs to another user`;
  const sticky = (stats.mode & 0o1000) !== 0;
  if ((stats.mode & 0o022) !== 0 && !sticky) return `${parent} can be written by other users`;
  return null;
}

/** Makes the directory ours alone, in a parent that has been checked. Returns why it cannot be used here, or null. */
function claim(path: string, uid: number): string | null {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if (codeOf(error) !== "EEXIST") return `${path} cannot be made (${codeOf(error)})`;
  }
  const stats = look(path, lstatSync);
  if (stats === null) return `${path} cannot be reached`;
  if (!stats.isDirectory()) throw unsafe(path, stats.isSymbolicLink() ? "it is a link" : "it is not a directory");
  if (stats.uid !== uid) throw unsafe(path, `it belongs to user ${stats.uid}, not to ${uid}`);
  try {
    // Also after mkdir: the umask may have taken rights that we need.
    if ((stats.mode & 0o777) !== 0o700) chmodSync(path, 0o700);
    // Read-only mounts, as at /run/podbot inside a sandbox, say so even to root.
    accessSync(path, constants.W_OK | constants.X_OK);
    return null;
  } catch (error) {
    return `${path} cannot be written (${codeOf(error)})`;
  }
}

/** The last resort: what is wrong here has no other way out than an error. */
function claimInState(path: string, uid: number): void {
  const obstacle = mendState(dirname(path), uid) ?? claim(path, uid);
  if (obstacle === null) return;
  throw new MachineError("RUNTIME_DIRECTORY", `There is no directory for the sockets of sessions: ${obstacle}.`, {
    hint: "Set XDG_RUNTIME_DIR to a directory of your own that you can write, with mode 0700.",
    details: { path },
  });
}

/** The state directory may be a link, if the owner has moved it to another disk. */
function mendState(state: string, uid: number): string | null {
  try {
    mkdirSync(state, { recursive: true, mode: 0o700 });
    const { uid: owner, mode } = statSync(state);
    if (owner === uid && (mode & 0o777) !== 0o700) chmodSync(state, 0o700);
  } catch (error) {
    return `${state} cannot be made (${codeOf(error)})`;
  }
  return obstacleAt(state, uid);
}

function stateWarning(path: string): string {
  return `Sockets lie in ${path}, on a disk that may be shared or slow. Set XDG_RUNTIME_DIR to a directory of your own in memory.`;
}

function unsafe(path: string, why: string): MachineError {
  return new MachineError("RUNTIME_DIRECTORY", `${path} is not safe for the sockets of sessions: ${why}.`, {
    hint: `Find out who made it, then remove it, or set XDG_RUNTIME_DIR to a directory of your own.`,
    details: { path },
  });
}

function look(path: string, stat: (path: string) => Stats): Stats | null {
  try {
    return stat(path);
  } catch {
    return null;
  }
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? String(error);
}
