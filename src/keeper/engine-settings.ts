import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseToml } from "../config/parse-toml.ts";
import { homeOf } from "./standpoint.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * What the settings of this user's Podman add to each container, as far as its usual files say: each is refused when a
 * container starts (the gap `engine-extras`), and told before by `podbot doctor`. The warden looks at the container.
 */
export function settingsExtras(env: Environment, uid: number): readonly string[] {
  const home = env["XDG_CONFIG_HOME"] || join(homeOf(env), ".config");
  const places = ["/usr/share/containers", "/etc/containers", ...(uid === 0 ? [] : [join(home, "containers")])];
  return [...containersOf(env, places).flatMap(addedBy), ...mountsOf(places)];
}

/** Later ones overrule. A named one stands alone. */
function containersOf(env: Environment, places: readonly string[]): readonly string[] {
  if (env["CONTAINERS_CONF"]) return [env["CONTAINERS_CONF"]];
  return places.flatMap((place) => [
    join(place, "containers.conf"),
    ...list(join(place, "containers.conf.d")).filter((path) => path.endsWith(".conf")),
  ]);
}

function addedBy(path: string): readonly string[] {
  const { containers } = parse(path);
  const settings = isRecord(containers) ? containers : {};
  const isSet = (key: string) => Array.isArray(settings[key]) && (settings[key] as readonly unknown[]).length > 0;
  const keys = ["volumes", "mounts", "devices"].filter(isSet);
  if (settings["seccomp_profile"] === "unconfined") keys.push("seccomp_profile");
  return keys.map((key) => `${key} in ${path}`);
}

/** Lines are SOURCE:TARGET; what is not there is passed over. At /run/secrets each container has something of ours. */
function mountsOf(places: readonly string[]): readonly string[] {
  const path = places.map((place) => join(place, "mounts.conf")).findLast((each) => existsSync(each));
  if (path === undefined) return [];
  const targets = read(path)
    .split("\n")
    .map((line) => line.trim().split(":"))
    .filter(([source = "", target]) => source.startsWith("/") && existsSync(source) && target !== "/run/secrets")
    .map(([source, target]) => target ?? source);
  return targets.map((target) => `${target} in ${path}`);
}

function parse(path: string): Readonly<Record<string, unknown>> {
  try {
    const settings = parseToml(read(path));
    return isRecord(settings) ? settings : {};
  } catch {
    // Podman itself says what is wrong with it.
    return {};
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function list(directory: string): readonly string[] {
  try {
    return readdirSync(directory)
      .sort()
      .map((name) => join(directory, name));
  } catch {
    return [];
  }
}
