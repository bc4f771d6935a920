import { spawn } from "node:child_process";
import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { ownerOf } from "./processes.ts";
import { findNativePrograms } from "./programs.ts";

/**
 * Whether the other end of a Unix socket is this user or root, outside of any box. Directories keep others out already;
 * this holds even where one was handed somewhere. Node cannot ask the kernel, so a small program does. Nothing may have
 * been read from the socket yet.
 */
export async function isOwnPeer(socket: Socket, uid: number): Promise<boolean> {
  const child = spawn(findNativePrograms().peer, [], {
    // Not as a standard stream: Node would make it blocking, for this process too.
    stdio: ["ignore", "pipe", "ignore", socket],
    env: {},
    cwd: "/",
  });
  const failed = new Promise<never>((_, reject) => child.once("error", reject));
  const said = /^(\d+) (\d+) \d+\n$/.exec(await Promise.race([text(child.stdout as Readable), failed]));
  if (said === null) return false;
  const [pid, peer] = [Number(said[1]), Number(said[2])];
  return (peer === uid || peer === 0) && ownerOf(pid)?.isInBox === false;
}
