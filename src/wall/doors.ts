import { type ChildProcess, spawn } from "node:child_process";
import type { Socket as DatagramSocket } from "node:dgram";
import { closeSync } from "node:fs";
import type { Server } from "node:net";
import { openAnonymous, readStart } from "../machine/anonymous-file.ts";
import type { NativePrograms } from "../machine/programs.ts";
import { doorsFailure } from "./doors-failure.ts";
import { namesPort } from "./guarded.ts";

/**
 * Sockets that listen inside a box, held out here. What was dialled inside is a connection's `localAddress`; an IPv4
 * address may be written as an IPv6 one, `::ffff:a.b.c.d`. They keep no process alive.
 */
export interface Doors extends AsyncDisposable {
  /** By port. 53 is always among them. */
  readonly tcp: ReadonlyMap<number, Server>;
  /** Questions for names, over IPv4. An answer goes out from the address that was asked. */
  readonly dns: DatagramSocket;
}

/** What the gate says with each socket that it hands over. */
type Handed =
  | { readonly message: { readonly door: "tcp"; readonly port: number }; readonly handle: Server }
  | { readonly message: { readonly door: "udp"; readonly port: number }; readonly handle: DatagramSocket };

/** The words of a gate are few. */
const mostBytes = 4_096;

/**
 * Takes over the doors that a child opens and sends on its channel. Rejects where the channel ends before all of them
 * are there: then those that were are closed again.
 */
export function collectDoors(child: ChildProcess, ports: readonly number[]): Promise<Doors> {
  const tcp = new Map<number, Server>();
  const expected = [namesPort, ...ports];
  let dns: DatagramSocket | undefined;
  let isComplete = false;
  const close = async () => {
    for (const server of tcp.values()) server.close();
    // Throws where it is closed already.
    if (dns !== undefined && isOpen(dns)) dns.close();
  };
  return new Promise((resolve, reject) => {
    const fail = () => {
      // When all are handed over, the gate ends.
      if (isComplete) return;
      void close();
      reject(doorsFailure("the gate ended before all of them were there"));
    };
    child.once("error", fail);
    child.once("disconnect", fail);
    child.on("message", (message, handle) => {
      const handed = { message, handle } as Handed;
      // A connection that cannot be accepted, an answer that cannot be sent: whoever asked asks again.
      handed.handle.on("error", () => {});
      handed.handle.unref();
      if (handed.message.door === "udp") dns = handed.handle as DatagramSocket;
      else tcp.set(handed.message.port, handed.handle as Server);
      if (dns === undefined || !expected.every((port) => tcp.has(port))) return;
      isComplete = true;
      resolve({ tcp, dns, [Symbol.asyncDispose]: close });
    });
  });
}

function isOpen(socket: DatagramSocket): boolean {
  try {
    socket.address();
    return true;
  } catch {
    return false;
  }
}

/** A network that doors are opened in, by a process in it; `netns` is its inode, where it is known. */
export interface DoorsTarget {
  readonly pid: number;
  readonly netns?: string;
}

/** Opens doors in the network of a process that runs already. */
export function openDoors(
  native: Pick<NativePrograms, "gate">,
  { pid, netns = "-" }: DoorsTarget,
  ports: readonly number[],
  signal?: AbortSignal,
): Promise<Doors> {
  return takeDoors(native, [`${pid}`, netns, ...ports.map(String)], ports, signal);
}

/** Takes over doors that somebody brings to a socket, which is made for him. */
export function awaitDoors(
  native: Pick<NativePrograms, "gate">,
  socket: string,
  ports: readonly number[],
  signal?: AbortSignal,
): Promise<Doors> {
  return takeDoors(native, ["--relay", socket], ports, signal);
}

async function takeDoors(
  { gate }: Pick<NativePrograms, "gate">,
  words: readonly string[],
  ports: readonly number[],
  signal: AbortSignal | undefined,
): Promise<Doors> {
  signal?.throwIfAborted();
  const complaints = openAnonymous();
  const child = spawn(gate, words, {
    cwd: "/",
    env: {},
    stdio: ["ignore", "ignore", complaints, "ipc"],
  });
  const end = () => child.kill("SIGKILL");
  signal?.addEventListener("abort", end, { once: true });
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()).once("error", () => resolve()));
  try {
    return await collectDoors(child, ports);
  } catch (cause) {
    signal?.throwIfAborted();
    await ended;
    throw doorsFailure(readStart(complaints, mostBytes), cause);
  } finally {
    signal?.removeEventListener("abort", end);
    closeSync(complaints);
  }
}
