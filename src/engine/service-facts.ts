import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { findOnPath } from "../machine/programs.ts";
import type { ServiceFacts } from "./service-settings.ts";
import type { Environment } from "./transport.ts";

/** Podman looks for runtimes in these, whatever PATH says. */
const programPlaces = "/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin";

export function readServiceFacts(env: Environment, uid: number): ServiceFacts {
  const limits = readLimits();
  const search = `${programPlaces}:${env["PATH"] ?? ""}`;
  return {
    configured: hasOwnSettings(env, uid === 0),
    unifiedCgroups: existsSync("/sys/fs/cgroup/cgroup.controllers"),
    systemd: existsSync("/run/systemd/system"),
    crun: findOnPath("crun", search) !== null,
    runc: findOnPath("runc", search) !== null,
    openFiles: hardLimit(limits, "Max open files"),
    processes: hardLimit(limits, "Max processes"),
  };
}

function hasOwnSettings(env: Environment, isRoot: boolean): boolean {
  if (env["CONTAINERS_CONF"]) return true;
  // Root's Podman reads none in a home.
  const home = isRoot ? null : env["XDG_CONFIG_HOME"] || (env["HOME"] ? join(env["HOME"], ".config") : null);
  const places = ["/etc/containers", ...(home === null ? [] : [join(home, "containers")])];
  return places.some(
    (place) => existsSync(join(place, "containers.conf")) || hasFiles(join(place, "containers.conf.d")),
  );
}

function hasFiles(directory: string): boolean {
  try {
    return readdirSync(directory).some((name) => name.endsWith(".conf"));
  } catch {
    return false;
  }
}

function readLimits(): string {
  try {
    return readFileSync("/proc/self/limits", "latin1");
  } catch {
    return "";
  }
}

/** The table's columns are a name, the soft limit and the hard one. */
function hardLimit(limits: string, name: string): number | null {
  const hard = new RegExp(`^${name} +\\S+ +(\\d+) `, "m").exec(limits)?.[1];
  return hard === undefined ? null : Number(hard);
}
