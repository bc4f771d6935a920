import { accessSync, constants, existsSync, realpathSync, statSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { MachineError } from "../errors.ts";

/** Podbot's own native programs, each at its resolved path. */
export interface NativePrograms {
  readonly launch: string;
  readonly enter: string;
  readonly shim: string;
  readonly warden: string;
  readonly gate: string;
  readonly reclaim: string;
  readonly peer: string;
  readonly raw: string;
}

/** Finds the native programs of this installation, wherever the calling module was bundled to. */
export function findNativePrograms(): NativePrograms {
  const inside = join("native", "bin", process.arch);
  for (let at = import.meta.dirname, level = 0; level < 5; at = dirname(at), level++) {
    if (existsSync(join(at, inside, "podbot-launch"))) {
      const directory = realpathSync.native(join(at, inside));
      const program = (name: string) => join(directory, `podbot-${name}`);
      return {
        launch: program("launch"),
        enter: program("enter"),
        shim: program("shim"),
        warden: program("warden"),
        gate: program("gate"),
        reclaim: program("reclaim"),
        peer: program("peer"),
        raw: program("raw"),
      };
    }
  }
  throw new MachineError("NATIVE_MISSING", `Podbot's native programs for ${process.arch} are not installed.`, {
    hint: "In a checkout: make build. Otherwise reinstall the package; it has them for x64 and arm64.",
  });
}

/** The program that is started as `podbot`. */
export function findOwnProgram(): string {
  for (let at = import.meta.dirname, level = 0; level < 5; at = dirname(at), level++) {
    const candidate = join(at, "dist", "podbot.cjs");
    if (existsSync(candidate)) return realpathSync.native(candidate);
  }
  throw new MachineError("NATIVE_MISSING", "Podbot's own program is not installed.", {
    hint: "In a checkout: make build. Otherwise reinstall the package.",
  });
}

/** The directory whose code runs as Podbot: nobody inside may change it. */
export function installationParts(native: NativePrograms): readonly string[] {
  const root = dirname(dirname(dirname(dirname(native.launch))));
  return [join(root, "dist"), join(root, "native", "bin")].filter((path) => existsSync(path));
}

/** The first executable of this name on PATH, resolved. Relative entries of PATH are passed over: they move. */
export function findOnPath(name: string, path: string): string | null {
  for (const directory of path.split(":")) {
    const candidate = join(directory, name);
    if (isAbsolute(directory) && isExecutable(candidate)) return realpathSync.native(candidate);
  }
  return null;
}

/** Where a system keeps its programs. */
const systemPlaces = [
  "/usr/local/sbin",
  "/usr/local/bin",
  "/usr/sbin",
  "/usr/bin",
  "/sbin",
  "/bin",
  "/run/current-system/sw/bin",
];

/**
 * PATH for programs that Podbot runs outside for the sake of a sandbox: directories of the system only. In others, as
 * in a project's `.venv/bin`, an agent may have put one of the same name. Root owns what it works on, too, so for root
 * only the usual places count.
 */
export function systemPath(path: string, uid: number = process.getuid?.() ?? -1): string {
  const others = uid === 0 ? [] : path.split(":").filter(isAbsolute).flatMap(ownedByRoot);
  return [...new Set([...systemPlaces, ...others])].join(":");
}

/** Of PATH as it is, what is the system's: for what may be missing, and is then not looked for elsewhere. */
export function ofTheSystem(path: string): string {
  const system = systemPath(path).split(":");
  const isSystems = (directory: string) =>
    system.includes(directory) || ownedByRoot(directory).some((real) => system.includes(real));
  return path
    .split(":")
    .filter((directory) => isAbsolute(directory) && isSystems(directory))
    .join(":");
}

function ownedByRoot(directory: string): readonly string[] {
  try {
    const real = realpathSync.native(directory);
    return isRoots(real) ? [real] : [];
  } catch {
    return [];
  }
}

/** With all above it: whoever may write there can put another in its place. */
function isRoots(directory: string): boolean {
  const { uid, mode } = statSync(directory);
  return uid === 0 && (mode & 0o022) === 0 && (directory === "/" || isRoots(dirname(directory)));
}

function isExecutable(path: string): boolean {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (!stats?.isFile()) return false;
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

export const installHints =
  "Debian or Ubuntu: apt install bubblewrap · Fedora: dnf install bubblewrap · Arch: pacman -S bubblewrap";

/** The system's own: what lies elsewhere on PATH, an agent may have put there, and it would run outside. */
export function findBwrap(path: string): string {
  const found = findOnPath("bwrap", ofTheSystem(path));
  if (found !== null) return found;
  const other = findOnPath("bwrap", path);
  const message =
    other === null
      ? "bubblewrap (bwrap) is not on PATH."
      : `${other} is not the system's: others than root may change it.`;
  throw new MachineError("BWRAP_MISSING", message, { hint: installHints });
}

export function requireLinux(platform: string = process.platform): void {
  if (platform === "linux") return;
  throw new MachineError("PLATFORM_UNSUPPORTED", `Podbot's walls need Linux; this is ${platform}.`, {
    hint: "Use a Linux machine, a virtual machine, or WSL 2.",
  });
}
