import { closeSync, constants, fstatSync, openSync, readSync, realpathSync } from "node:fs";

export type PlainFile =
  | { readonly kind: "read"; readonly bytes: Buffer }
  | { readonly kind: "absent" }
  /** `special`: a directory, a pipe, a device. `refused`: the machine does not let us read it, and why. */
  | { readonly kind: "link" | "special" | "too-large" }
  | { readonly kind: "refused"; readonly cause: unknown };

/**
 * Reads a file that an agent may have made. Never waits (a named pipe has no writer yet), never follows a link in the
 * last name, never reads more than `largest` bytes, and looks at what it opened and not at a name that may change.
 */
export function readPlainFile(path: string, largest: number): PlainFile {
  const { O_RDONLY, O_NONBLOCK, O_NOFOLLOW, O_NOCTTY } = constants;
  let descriptor: number;
  try {
    descriptor = openSync(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return { kind: "absent" };
    if (code === "ELOOP") return { kind: "link" };
    return code === "ENXIO" ? { kind: "special" } : { kind: "refused", cause };
  }
  try {
    const stats = fstatSync(descriptor);
    if (!stats.isFile()) return { kind: "special" };
    const bytes = stats.size > largest ? null : readAtMost(descriptor, stats.size, largest);
    return bytes === null ? { kind: "too-large" } : { kind: "read", bytes };
  } catch (cause) {
    return { kind: "refused", cause };
  } finally {
    closeSync(descriptor);
  }
}

/** The text of a file that the owner or a variable of theirs names, be it by links; null where there is none to be had. */
export function readNamedFile(path: string, largest: number): string | null {
  try {
    const file = readPlainFile(realpathSync.native(path), largest);
    return file.kind === "read" ? file.bytes.toString("utf8") : null;
  } catch {
    return null;
  }
}

/** Files that the kernel makes up say that they are empty, and others may grow. */
function readAtMost(descriptor: number, expected: number, largest: number): Buffer | null {
  const parts: Buffer[] = [];
  let size = 0;
  for (;;) {
    const part = Buffer.allocUnsafe(Math.max(expected - size, 4_096) + 1);
    const read = readSync(descriptor, part, 0, part.length, null);
    if (read === 0) return Buffer.concat(parts);
    size += read;
    if (size > largest) return null;
    parts.push(part.subarray(0, read));
  }
}
