import { closeSync, constants, openSync } from "node:fs";
import { basename, dirname } from "node:path";

/** Linux: a descriptor that names a directory without opening it. Node has no name for the flag. */
const O_PATH = 0o10000000;

/** What the address of a Unix socket holds, in bytes. Node 20 cuts a longer one off without a word. */
const longestAddress = 107;

export interface SocketPath extends Disposable {
  /** What to give to `listen` or `connect`. It means nothing in another process. */
  readonly address: string;
}

/**
 * An address for a socket, however long its path is. Dispose of it only when the connection is made, or the server
 * closed: to close, Node removes the name that it was given, and that must not be one in another directory by then.
 * Throws what the system says where the directory cannot be opened.
 */
export function openSocketPath(path: string): SocketPath {
  if (Buffer.byteLength(path) <= longestAddress) return { address: path, [Symbol.dispose]() {} };
  let descriptor: number | null = openSync(dirname(path), O_PATH | constants.O_DIRECTORY);
  return {
    address: `/proc/self/fd/${descriptor}/${basename(path)}`,
    [Symbol.dispose]() {
      if (descriptor !== null) closeSync(descriptor);
      descriptor = null;
    },
  };
}
