import { isAbsolute, join } from "node:path";

type Environment = Readonly<Record<string, string | undefined>>;

/** Where the owner's own configuration lies. */
export function globalConfigDir(env: Environment, home: string): string {
  return join(xdgDir(env["XDG_CONFIG_HOME"]) ?? join(home, ".config"), "podbot");
}

/** Where Podbot keeps what must outlive a run: the trust records, and sessions. */
export function statePath(env: Environment, home: string): string {
  return join(xdgDir(env["XDG_STATE_HOME"]) ?? join(home, ".local", "state"), "podbot");
}

/**
 * The XDG specification has relative paths ignored. Here it is also a matter of safety: relative to a project, the
 * trust records would lie where the project can write them.
 */
function xdgDir(value: string | undefined): string | undefined {
  return value !== undefined && isAbsolute(value) ? value : undefined;
}
