import { join } from "node:path";
import { readNamedFile } from "../machine/plain-file.ts";
import { type Candidate, podmanConnection } from "./candidates.ts";
import type { Environment } from "./transport.ts";

/** The connection that Podman's own configuration of this user names, or null. What cannot be read names none. */
export async function readPodmanConnection(env: Environment, home: string | null): Promise<Candidate | null> {
  const configured = env["XDG_CONFIG_HOME"] || (home === null ? null : join(home, ".config"));
  if (configured === null) return null;
  const json = read(env["PODMAN_CONNECTIONS_CONF"] || join(configured, "containers/podman-connections.json"));
  const conf = read(env["CONTAINERS_CONF"] || join(configured, "containers/containers.conf"));
  if (json === null && conf === null) return null;
  return podmanConnection(parseJson(json), await parseToml(conf));
}

const longest = 1_024 * 1_024;

function read(path: string): string | null {
  return readNamedFile(path, longest);
}

function parseJson(text: string | null): unknown {
  try {
    return text === null ? null : JSON.parse(text);
  } catch {
    return null;
  }
}

/** The parser is loaded only where there is something to parse that could matter. */
async function parseToml(text: string | null): Promise<unknown> {
  if (!text?.includes("active_service")) return null;
  try {
    const { parse } = await import("smol-toml");
    return parse(text);
  } catch {
    return null;
  }
}
