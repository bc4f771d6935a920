import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { Budget } from "./budget.ts";
import { pump, type Sieve, type Tally } from "./pump.ts";
import { type Speech, sniff } from "./sniff.ts";

/** How many bytes went out, and how many came back. */
export interface Traffic {
  readonly sent: Tally;
  readonly received: Tally;
}

/**
 * Joins two sockets until both directions have ended: one that has said all may still listen. One that breaks breaks
 * the other.
 */
export async function splice(inner: Socket, outer: Socket, { sent, received }: Traffic, sieve?: Sieve): Promise<void> {
  const carry = async (from: Socket, to: Socket, tally: Tally, through?: Sieve) => {
    await pump(from, to, tally, through);
    to.end();
  };
  for (const socket of [inner, outer]) socket.on("error", () => {});
  try {
    await Promise.all([carry(inner, outer, sent), carry(outer, inner, received, sieve)]);
    await Promise.all([closed(inner), closed(outer)]);
  } catch {
    // Whoever was broken off is not told that this was the end.
  }
  for (const socket of [inner, outer]) breakOff(socket);
}

/** As if the wire were cut: nobody takes it for an end. Node knows how to for plain sockets alone. */
export function breakOff(socket: Socket): void {
  if (socket instanceof TLSSocket) socket.destroy();
  else if (!socket.destroyed) socket.resetAndDestroy();
}

/** Both directions have ended: what is left to be written is written first. */
function closed(socket: Socket): Promise<void> {
  if (socket.destroyed) return Promise.resolve();
  return new Promise((resolve) => socket.once("close", () => resolve()));
}

/**
 * Waits until one of the two speaks. Where it is the box, it is looked at what it says; where it is the other, it is
 * one of the protocols in which the server begins, and nothing else is to be known.
 */
export async function hear(
  inner: Socket,
  outer: Socket,
  { beginningMs, openings }: { readonly beginningMs: number; readonly openings: Budget },
): Promise<Speech> {
  const stop = new AbortController();
  const onData = (bytes: Buffer) => {
    outer.pause();
    outer.unshift(bytes);
    onOuter();
  };
  const onOuter = () => {
    outer.off("data", onData).off("end", onOuter).off("close", onOuter);
    stop.abort();
  };
  outer
    .on("error", () => {})
    .on("data", onData)
    .on("end", onOuter)
    .on("close", onOuter);
  const speech = await sniff(inner, { silenceMs: null, finishMs: beginningMs, openings, signal: stop.signal });
  outer.off("data", onData).off("end", onOuter).off("close", onOuter).pause();
  return speech;
}

/**
 * Passes on the line by which a client of SSH begins, and waits until the other side begins so, too. What answers
 * otherwise may be a server of HTTP, and hears no more.
 */
export async function greetSsh(inner: Socket, outer: Socket, lineBytes: number, withinMs: number): Promise<boolean> {
  outer.write(inner.read(lineBytes) as Buffer);
  const answer = await firstBytes(outer, sshBegins.length, withinMs);
  return answer === sshBegins;
}

const sshBegins = "SSH-";

/** They are put back. Fewer, where no more come. */
function firstBytes(socket: Socket, count: number, withinMs: number): Promise<string> {
  let seen = Buffer.alloc(0);
  return new Promise((resolve) => {
    const settle = () => {
      clearTimeout(timer);
      socket.off("data", onData).off("end", settle).off("close", settle).pause();
      if (seen.length > 0 && !socket.destroyed && !socket.readableEnded) socket.unshift(seen);
      resolve(seen.toString("latin1", 0, count));
    };
    const onData = (bytes: Buffer) => {
      seen = Buffer.concat([seen, bytes]);
      if (seen.length >= count) settle();
    };
    const timer = setTimeout(settle, withinMs);
    socket
      .on("error", () => {})
      .on("data", onData)
      .on("end", settle)
      .on("close", settle)
      .resume();
  });
}

/** Says the last word, and does not wait for long until the other end has heard it. */
export function closeWith(socket: Socket, bytes: Buffer | string, lingerMs: number): void {
  const timer = setTimeout(() => socket.destroy(), lingerMs);
  socket.once("close", () => clearTimeout(timer));
  socket.on("error", () => {}).end(bytes, "latin1");
  // What is still on its way would have the last word lost with a reset.
  socket.resume();
  if (socket.destroyed) clearTimeout(timer);
}
