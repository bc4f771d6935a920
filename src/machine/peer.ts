import { spawn } from "node:child_process";
import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { markOf, type ProcessMark } from "./process-mark.ts";
import { ownerOf } from "./processes.ts";
import { findNativePrograms, type NativePrograms } from "./programs.ts";

/** Who is at the other end of a Unix socket, as the kernel says. */
export interface Peer {
  readonly uid: number;
  /** The process that has dialled; null where it has ended, or has no number here. */
  readonly process: ProcessMark | null;
}

/**
 * Asks the kernel who has dialled, or listens, at the other end of a Unix socket. Node cannot ask, so a small program
 * does. Node stops reading what it lends to another process: the caller that goes on with the socket must resume it.
 */
export async function peerOf(
  socket: Socket,
  { peer }: Pick<NativePrograms, "peer"> = findNativePrograms(),
): Promise<Peer | null> {
  const child = spawn(peer, [], {
    // Not as a standard stream: Node would make it blocking, for this process too.
    stdio: ["ignore", "pipe", "ignore", socket],
    env: {},
    cwd: "/",
  });
  const failed = new Promise<never>((_, reject) => child.once("error", reject));
  const said = /^(\d+) (\d+) \d+ (\d+)\n$/.exec(await Promise.race([text(child.stdout as Readable), failed]));
  if (said === null) return null;
  const [, pid, uid, started = "0"] = said;
  return { uid: Number(uid), process: started === "0" ? null : markOf(Number(pid), started) };
}

/**
 * Whether the other end of a Unix socket is this user or root, outside of any box. Directories keep others out already;
 * this holds even where one was handed somewhere. Nothing may have been read from the socket yet.
 */
export async function isOwnPeer(socket: Socket, uid: number): Promise<boolean> {
  const peer = await peerOf(socket);
  if (peer === null || peer.process === null) return false;
  return (peer.uid === uid || peer.uid === 0) && ownerOf(peer.process.pid)?.isInBox === false;
}
