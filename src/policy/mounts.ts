import { normalize } from "node:path";
import { PolicyError } from "../errors.ts";
import { isBelow, isWithin } from "./paths.ts";

/** A directory of the host that is to be seen inside a container. */
export interface Mount {
  /** The source as it was written. */
  readonly asked: string;
  /** The source with every link resolved. */
  readonly source: string;
  /** Where it will be inside. */
  readonly target: string;
  /** Below which directories a source may lie, with every link resolved. */
  readonly roots: readonly string[];
  /** Which layer asked for it, as `--workspace` or the configuration's file. */
  readonly origin: string;
}

/** Of a home inside: where credentials of agents are put, and what git is told. */
const ownInHome: readonly string[] = [
  ".claude",
  ".claude.json",
  ".codex",
  ".config/goose",
  ".config/opencode",
  ".gemini",
  ".local/share/opencode",
  ".qwen",
  ".gitconfig",
];

/**
 * What no mount may be, lie in or cover: the kernel's filesystems, where a mount can undo the engine's own masks; what
 * programs inside are made of; and where Podbot puts its corner, tokens, credentials and identity. `/var/run` is a
 * link to `/run` in most images, and the engine follows it.
 */
export const reservedTargets: readonly string[] = [
  "/proc",
  "/sys",
  "/dev",
  "/run",
  "/var/run",
  "/etc",
  "/usr",
  "/bin",
  "/sbin",
  "/lib",
  "/lib32",
  "/lib64",
  "/libx32",
  ...["/root", "/home/podbot"].flatMap((home) => ownInHome.map((name) => `${home}/${name}`)),
  "/var/lib/containers",
];

/** Where people do keep work below a reserved target: these may be mounted below, but not on. */
const openBelow: readonly string[] = ["/usr/src", "/usr/local/src", "/run/media"];

/** Ordinary places for a workspace to lie in, but not to be: images keep programs, homes and sockets there. */
const shared: readonly string[] = ["/home", "/home/podbot", "/opt", "/root", "/tmp"];

/** Throws where the source is not one that the owner has opened, or the target not one that can be spared inside. */
export function checkMount(mount: Mount): void {
  checkSource(mount);
  checkTarget(mount);
}

function checkSource(mount: Mount): void {
  const { asked, source } = mount;
  if (source === "/") {
    throw refused(mount, "it is the whole filesystem of the host", "Name the directory that the work is in.");
  }
  if (!isCanonical(source)) throw refused(mount, "its path is not resolved", "Name an absolute path.");
  // A root that is written otherwise could hold more than it says: it holds nothing.
  const roots = mount.roots.filter(isCanonical);
  if (roots.some((root) => isWithin(source, root))) return;
  if (roots.length === 0) {
    const hint = "Set `mounts.allowed_roots` to the directories that may be mounted, or use `--workspace`.";
    throw refused(mount, "no directory of the host may be mounted", hint);
  }
  const outside = `lies in none of the allowed roots (${roots.map(quote).join(", ")})`;
  const hint = "Add a directory to `mounts.allowed_roots`, or use `--workspace`.";
  if (normalize(`${asked}/`) === `${source}/`) throw refused(mount, `it ${outside}`, hint);
  throw refused(mount, `it resolves to ${quote(source)}, which ${outside}`, hint);
}

function checkTarget(mount: Mount): void {
  const { target } = mount;
  const at = `it cannot be mounted at ${quote(target)}, which`;
  const hint = "Choose another place inside with `workspace.container_path`, as `/workspace`.";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  if (!isCanonical(target) || /[\u0000-\u001f\u007f]/.test(target)) {
    throw refused(mount, `${at} is not an absolute path in its shortest form`, hint);
  }
  const covered = [...reservedTargets, ...shared].find((place) => isWithin(place, target));
  if (covered === target) throw refused(mount, `${at} is reserved`, hint);
  if (covered !== undefined) throw refused(mount, `${at} would cover ${quote(covered)}`, hint);
  if (openBelow.some((place) => isBelow(target, place))) return;
  const around = reservedTargets.find((place) => isBelow(target, place));
  if (around !== undefined) throw refused(mount, `${at} lies in ${quote(around)}, which is reserved`, hint);
}

/** Absolute, and without anything that a comparison by components would misread. */
function isCanonical(path: string): boolean {
  if (path === "/") return true;
  return (
    path.startsWith("/") &&
    path
      .slice(1)
      .split("/")
      .every((part) => !["", ".", ".."].includes(part))
  );
}

function refused(mount: Mount, why: string, hint: string): PolicyError {
  const { asked, source, target, roots, origin } = mount;
  return new PolicyError("MOUNT_REFUSED", `${quote(asked)} (${origin}) may not be mounted: ${why}.`, {
    hint,
    details: { asked, source, target, roots, origin },
  });
}

function quote(path: string): string {
  return JSON.stringify(path);
}
