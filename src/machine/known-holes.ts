import { spawnSync } from "node:child_process";

/** Published holes of a version, and what to do about them. */
export interface KnownHole {
  readonly cves: readonly string[];
  /** The first versions without them, one for each branch that got a fix. */
  readonly fixedIn: readonly string[];
  readonly what: string;
  readonly remedy: string;
}

export type Examined = "bubblewrap" | "runc" | "podman" | "docker";

/**
 * What matters for a wall, as of November 2026. Distributions mend older versions without another number, so a version
 * alone is no proof. crun was looked at for the holes of runc and has none of them.
 */
const holes: Readonly<Record<Examined, KnownHole>> = {
  bubblewrap: {
    cves: ["CVE-2026-87766"],
    fixedIn: ["0.12.0"],
    what: "a link in a directory that it mounts can have it make files outside, while it builds a sandbox",
    remedy:
      "Install bubblewrap 0.12 or later. Podbot's sandboxes hold without it, since Podbot mounts by descriptor and follows no link there; other programs that use bubblewrap may not.",
  },
  runc: {
    cves: ["CVE-2025-31133", "CVE-2025-52565", "CVE-2025-52881"],
    fixedIn: ["1.2.8", "1.3.3", "1.4.0-rc.3"],
    what: "an image, or a container that shares a directory with one that starts, can have it write to the host's /proc",
    remedy: "Install runc 1.2.8, 1.3.3 or 1.4.0, or use crun; or prefer bubblewrap or a rootless engine.",
  },
  podman: {
    cves: ["CVE-2024-9341", "CVE-2024-9407", "CVE-2024-9675", "CVE-2024-9676"],
    fixedIn: ["5.2.5"],
    what: "links in a hostile image reach directories of the host where FIPS mode is on, and in a build",
    remedy: "Install Podman 5.2.5 or later. Until then use and build only images that you trust.",
  },
  docker: {
    cves: ["CVE-2026-41567", "CVE-2026-41568", "CVE-2026-42306"],
    fixedIn: ["29.5.1"],
    what: "copying into a container that runs, or from a compressed archive, can reach the host",
    remedy:
      "Install Docker 29.5.1 or later. Podbot does neither; until then use no `docker cp` with a session's container.",
  },
};

/** The holes of a version, in whatever words it was told; none where there is no number in them. */
export function holesOf(program: Examined, version: string): readonly KnownHole[] {
  const parsed = parseVersion(version);
  const hole = holes[program];
  return parsed === null || isFixed(parsed, hole.fixedIn) ? [] : [hole];
}

/** What a program says of its version, on its first line; empty where it says nothing. */
export function versionOf(program: string): string {
  const { stdout } = spawnSync(program, ["--version"], { encoding: "utf8", timeout: 10_000, env: {} });
  return (stdout ?? "").split("\n")[0]?.trim() ?? "";
}

/** Major, minor, patch, and the number of a release candidate: infinite for the release itself. */
type Version = readonly [major: number, minor: number, patch: number, candidate: number];

function parseVersion(text: string): Version | null {
  const found = /(?<![\d.])(\d+)\.(\d+)(?:\.(\d+))?(?:-(?:rc|dev|alpha|beta)\.?(\d*))?/.exec(text);
  if (found === null) return null;
  const [whole, major, minor, patch = "0", candidate] = found;
  const isEarly = /-(?:rc|dev|alpha|beta)/.test(whole);
  return [Number(major), Number(minor), Number(patch), isEarly ? Number(candidate ?? "0") : Number.POSITIVE_INFINITY];
}

/** A branch got its fix with a version of its own; branches that began later than the last of these have it. */
function isFixed(version: Version, fixedIn: readonly string[]): boolean {
  const fixes = fixedIn.map((text) => parseVersion(text) as Version);
  const own = fixes.find(([major, minor]) => major === version[0] && minor === version[1]);
  return own !== undefined ? compare(version, own) >= 0 : fixes.every((fix) => compare(version, fix) > 0);
}

function compare(one: Version, other: Version): number {
  const at = one.findIndex((part, index) => part !== other[index]);
  return at < 0 ? 0 : (one[at] as number) - (other[at] as number);
}
