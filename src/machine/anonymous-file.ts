import { constants, openSync, readSync, unlinkSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Linux: a file without a name, gone when it is closed. Node has no name for the flag. */
const O_TMPFILE = 0o20200000;

/** A descriptor from which these bytes can be read, once; it has no name and lies in memory where it can. */
export function openAnonymous(bytes: Uint8Array = new Uint8Array()): number {
  const descriptor = openNameless("/dev/shm") ?? openNameless(tmpdir()) ?? openUnlinked();
  // Written at a position, so that reading begins at the start.
  for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at, bytes.length - at, at);
  return descriptor;
}

/** The first bytes of such a file, however large it has become. */
export function readStart(descriptor: number, most: number): string {
  const start = Buffer.alloc(most);
  return start.toString("utf8", 0, readSync(descriptor, start, 0, most, 0));
}

function openNameless(directory: string): number | null {
  try {
    return openSync(directory, O_TMPFILE | constants.O_RDWR, 0o600);
  } catch {
    return null;
  }
}

/** For filesystems that know no nameless files. */
function openUnlinked(): number {
  const path = join(tmpdir(), `podbot-${process.pid}-${process.hrtime.bigint()}`);
  const descriptor = openSync(path, "wx+", 0o600);
  unlinkSync(path);
  return descriptor;
}
