import type { Socket } from "node:net";
import type { Budget } from "./budget.ts";
import { readClientHello } from "./client-hello.ts";
import { bounds } from "./limits.ts";

/** What a connection turns out to speak. */
export type Speech =
  | { readonly kind: "tls"; readonly serverName: string | null; readonly alpn: readonly string[] }
  | { readonly kind: "http" }
  /** The line by which a client of SSH begins, with its end, and whatever follows. */
  | { readonly kind: "other"; readonly resembles: "ssh"; readonly lineBytes: number }
  /** By its first bytes; what lenient servers might still read as a request resembles HTTP. */
  | { readonly kind: "other"; readonly resembles: "http" | "nothing" }
  /** Nothing for as long as was waited, or nothing more. */
  | { readonly kind: "silent" }
  | { readonly kind: "bad"; readonly why: string }
  | { readonly kind: "gone" };

export interface Patience {
  /** Until the first byte; null: for ever. */
  readonly silenceMs: number | null;
  /** From the first byte until it is clear what is spoken. */
  readonly finishMs: number;
  /** Where the first bytes of all connections are held. */
  readonly openings: Budget;
  /** Ends the waiting: then it is silent. */
  readonly signal?: AbortSignal;
}

const handshake = 0x16;
const method = /^[A-Z]{3,16} (?:\/|\* |[Hh][Tt][Tt][Pp][Ss]?:\/\/)|^CONNECT /;
/** What may become one. */
const beginning = /^[A-Z]{0,16}$|^[A-Z]{3,16} (?:\*|[Hh][Tt]{0,2}|[Hh][Tt][Tt][Pp][Ss]?:?\/?)?$/;
/** RFC 4253: version, software, and a remark. HTTP has a version at the end of its line. */
const sshLine = /^SSH-(?:2\.0|1\.99)-(?!.* HTTP\/)[\x20-\x7e]+\r\n$/;

/** Looks at the first bytes and puts them back, but for empty lines before a request, of which no parser makes anything. */
export function sniff(socket: Socket, { silenceMs, finishMs, openings, signal }: Patience): Promise<Speech> {
  return new Promise((resolve) => {
    const seen = new Growing();
    let timer = silenceMs === null ? undefined : setTimeout(() => settle({ kind: "silent" }), silenceMs);
    const settle = (speech: Speech) => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      socket.off("data", onData).off("end", onEnd).off("close", onClose).pause();
      const kept = speech.kind === "http" ? seen.bytes.subarray(emptyBytes(seen.bytes)) : seen.bytes;
      openings.give(seen.length);
      if (kept.length > 0 && !socket.destroyed && !socket.readableEnded) socket.unshift(kept);
      resolve(speech);
    };
    const onAbort = () => settle({ kind: "silent" });
    const onData = (bytes: Buffer) => {
      if (seen.length === 0) {
        clearTimeout(timer);
        timer = setTimeout(() => settle({ kind: "bad", why: "its beginning took too long" }), finishMs);
      }
      if (!openings.take(bytes.length)) return settle({ kind: "bad", why: "too many connections are beginning" });
      seen.push(bytes);
      const speech = recognize(seen.bytes);
      if (speech !== null) settle(speech);
    };
    const onEnd = () =>
      settle(seen.length === 0 ? { kind: "silent" } : { kind: "bad", why: "it ended in its beginning" });
    const onClose = () => settle(seen.length === 0 ? { kind: "gone" } : { kind: "bad", why: "it broke off" });
    if (socket.destroyed) return resolve({ kind: "gone" });
    if (signal?.aborted || socket.readableEnded) return settle({ kind: "silent" });
    signal?.addEventListener("abort", onAbort);
    socket.on("data", onData).on("end", onEnd).on("close", onClose);
    socket.resume();
  });
}

/** Bytes that come one by one are not copied anew with each. What `recognize` leaves open is never long. */
class Growing {
  #buffer: Buffer = Buffer.alloc(0);
  length = 0;

  push(bytes: Buffer): void {
    const needed = this.length + bytes.length;
    if (this.length === 0) this.#buffer = bytes;
    else {
      if (needed > this.#buffer.length) {
        const larger = Buffer.allocUnsafe(2 * needed);
        this.#buffer.copy(larger, 0, 0, this.length);
        this.#buffer = larger;
      }
      bytes.copy(this.#buffer, this.length);
    }
    this.length = needed;
  }

  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.length);
  }
}

/** Null: too little to know. Each way to null ends after a number of bytes: a hello's, that of empty lines, or a line's. */
function recognize(seen: Buffer): Speech | null {
  if (seen[0] === handshake) {
    const hello = readClientHello(seen);
    if (hello.kind === "more") return null;
    return hello.kind === "bad" ? hello : { ...hello, kind: "tls" };
  }
  const from = emptyBytes(seen);
  if (from > bounds.emptyBytes) return { kind: "bad", why: "it says nothing but empty lines" };
  const start = seen.toString("latin1", from, from + 32);
  if (method.test(start)) return { kind: "http" };
  if (from === 0 && start.startsWith("SSH-")) return recognizeSsh(seen);
  return beginning.test(start) || start === "\r" ? null : { kind: "other", resembles: resemblance(seen) };
}

/** How many bytes are empty lines, before anything else. */
function emptyBytes(seen: Buffer): number {
  let at = 0;
  while (at <= bounds.emptyBytes) {
    if (seen[at] === 0x0a) at += 1;
    else if (seen[at] === 0x0d && seen[at + 1] === 0x0a) at += 2;
    else break;
  }
  return at;
}

/** A whole line of SSH. Anything else that begins so may be a method by the grammar of HTTP, which lenient servers answer. */
function recognizeSsh(seen: Buffer): Speech | null {
  const end = seen.subarray(0, bounds.sshLineBytes).indexOf("\n");
  if (end < 0 && seen.length < bounds.sshLineBytes) return null;
  const isSsh = sshLine.test(seen.toString("latin1", 0, end + 1));
  return isSsh ? { kind: "other", resembles: "ssh", lineBytes: end + 1 } : { kind: "other", resembles: "http" };
}

/** Every request begins with a letter of its method, or with an empty line. */
function resemblance(seen: Buffer): "http" | "nothing" {
  return /^[!#$%&'*+.^_`|~0-9A-Za-z\s-]/.test(seen.toString("latin1", 0, 1)) ? "http" : "nothing";
}
