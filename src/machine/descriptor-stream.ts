import { closeSync, constants, fstatSync, openSync, write } from "node:fs";
import { Socket } from "node:net";
import { Writable } from "node:stream";

/** How long to wait for a reader where somebody has made the descriptor non-blocking. */
const retryMs = 5;

/**
 * Writes to a descriptor without ever blocking the process: Node's own standard output does, as long as a reader is
 * slow, and whoever keeps a session must answer meanwhile.
 */
export function writeTo(descriptor: number): Writable {
  return new Writable({
    // One write at a time, each as large as what has come in: so order is kept and a slow reader is felt.
    write(bytes: Buffer, _encoding, done) {
      writeAll(descriptor, bytes, 0, done);
    },
  });
}

/**
 * The same for who must be able to leave at any time: a write that waits for a reader holds up the end of the process,
 * unless the kernel does the waiting. A pipe is opened anew, so that whoever shares it does not find it changed.
 */
export function channelTo(descriptor: number): Writable {
  const stat = fstatSync(descriptor);
  if (stat.isSocket()) return socketOn(descriptor);
  const own = stat.isFIFO() ? reopen(descriptor) : null;
  return own === null ? writeTo(descriptor) : socketOn(own);
}

/** Whether somebody could read what is written there. Only of a pipe that is known without writing. */
export function hasReader(descriptor: number): boolean {
  if (!fstatSync(descriptor).isFIFO()) return true;
  try {
    closeSync(openAnew(descriptor));
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ENXIO";
  }
}

/** Null where it is another user's, or nobody reads it any more. */
function reopen(descriptor: number): number | null {
  try {
    return openAnew(descriptor);
  } catch {
    return null;
  }
}

function openAnew(descriptor: number): number {
  return openSync(`/proc/self/fd/${descriptor}`, constants.O_WRONLY | constants.O_NONBLOCK);
}

function socketOn(descriptor: number): Socket {
  return new Socket({ fd: descriptor, readable: false, writable: true });
}

function writeAll(descriptor: number, bytes: Buffer, at: number, done: (error?: Error | null) => void): void {
  write(descriptor, bytes, at, bytes.length - at, null, (error, count) => {
    if (error?.code === "EAGAIN") setTimeout(writeAll, retryMs, descriptor, bytes, at, done);
    else if (error !== null) done(error);
    else if (at + count < bytes.length) writeAll(descriptor, bytes, at + count, done);
    else done();
  });
}
