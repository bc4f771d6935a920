import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { statePath } from "../config/paths.ts";
import { thisHost } from "../machine/host.ts";
import { detectSandbox, type Inside } from "../machine/inside.ts";
import { existingRuntimeDirectories, findRuntimeDirectory } from "../machine/runtime-directory.ts";
import { homeOf, resolved } from "./standpoint.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Where Podbot keeps things. */
export interface Places {
  readonly state: string;
  /** Claims on held names lie where every Podbot of this user finds them, whatever HOME says. */
  readonly held: string;
}

/** Inside another sandbox all of that is read-only; what is kept there lives as long as the outer one. */
export function placesOf(env: Environment, inside: Inside | null = detectSandbox()): Places {
  if (inside !== null) return { state: "/tmp/podbot-state", held: "/tmp/podbot-state/held" };
  return {
    state: statePath(env, homeOf(env)),
    held: join(thisHost().systemHome, ".local/state/podbot/held"),
  };
}

/** An agent does not need any of this, and what other sandboxes hold would tell it when one of them begins. */
const recorded = ["sessions", "audit", "run", "held", "trust.json"];

/**
 * What a plan must hide: the directories in which sessions are recorded, have their sockets and leave what they have
 * asked for, the names that they hold, and the files that the owner trusts; also those of the same user's other
 * environments. They can only be hidden once they exist, so those of this one are made now, unless nothing is to be
 * changed.
 */
export function sessionPlaces(
  env: Environment,
  { state, held }: Places,
  makes: { readonly records: boolean; readonly runtime: boolean },
): readonly string[] {
  const { uid, systemHome } = thisHost();
  const places = { env, uid, state };
  const home = homeOf(env);
  // A home that is missing is refused later, and must not come into being by this.
  if (existsSync(home)) {
    if (makes.runtime) findRuntimeDirectory(places);
    if (makes.records) for (const path of [join(state, "sessions"), join(state, "audit"), held]) makeDirectory(path);
  }
  const states = new Set([state, statePath({}, home), statePath({}, systemHome)]);
  const all = [held, ...[...states].flatMap((path) => recorded.map((name) => join(path, name)))];
  const existing = [...all.filter((path) => existsSync(path)), ...existingRuntimeDirectories(places)];
  return [...new Set(existing.map(resolved))];
}

/** Where it cannot be made, the record cannot be written either, and says why. */
function makeDirectory(path: string): void {
  try {
    if (!existsSync(path)) mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch {}
}
