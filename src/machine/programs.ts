import { accessSync, constants, existsSync, realpathSync, statSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { MachineError } from "../errors.ts";

/** Podbot's own native programs, each at its resolved path. */
export interface NativePrograms {
  readonly launch: string;
  readonly enter: string;
  readonly shim: string;
}

/** Finds the native programs of this installation, wherever the calling module was bundled to. */
export function findNativePrograms(): NativePrograms {
  const inside = join("native", "bin", process.arch);
  for (let at = import.meta.dirname, level = 0; level < 5; at = dirname(at), level++) {
    if (existsSync(join(at, inside, "podbot-launch"))) {
      const directory = realpathSync.native(join(at, inside));
      return {
        launch: join(directory, "podbot-launch"),
        enter: join(directory, "podbot-enter"),
        shim: join(directory, "podbot-shim"),
      };
    }
  }
  throw new MachineError("NATIVE_MISSING", `Podbot's native programs for ${process.arch} are not installed.`, {
    hint: "In a checkout: make build. Otherwise reinstall the package; it has them for x64 and arm64.",
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

export function findBwrap(path: string): string {
  const found = findOnPath("bwrap", path);
  if (found !== null) return found;
  throw new MachineError("BWRAP_MISSING", "bubblewrap (bwrap) is not on PATH.", { hint: installHints });
}

export function requireLinux(platform: string = process.platform): void {
  if (platform === "linux") return;
  throw new MachineError("PLATFORM_UNSUPPORTED", `Podbot's walls need Linux; this is ${platform}.`, {
    hint: "Use a Linux machine, a virtual machine, or WSL 2.",
  });
}
