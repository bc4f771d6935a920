import type { Socket } from "node:net";
import { readClientHello } from "./client-hello.ts";

/** What a connection turns out to speak. */
export type Speech =
  | { readonly kind: "tls"; readonly serverName: string | null; readonly alpn: readonly string[] }
  | { readonly kind: "http" }
  /** By its first bytes; what lenient servers might still read as a request resembles HTTP. */
  | { readonly kind: "other"; readonly resembles: "http" | "ssh" | "nothing" }
  /** Nothing for as long as was waited, or nothing more. */
  | { readonly kind: "silent" }
  | { readonly kind: "bad"; readonly why: string }
  | { readonly kind: "gone" };

export interface Patience {
  /** Until the first byte; null: for ever. */
  readonly silenceMs: number | null;
  /** From the first byte until it is clear what is spoken. */
  readonly finishMs: number;
  /** Ends the waiting: then it is silent. */
  readonly signal?: AbortSignal;
}

const handshake = 0x16;
const method = /^[A-Z]{3,16} (?:\/|\* |[Hh][Tt][Tt][Pp][Ss]?:\/\/)|^CONNECT /;
/** What may become one. */
const beginning = /^[A-Z]{0,16}$|^[A-Z]{3,16} (?:\*|[Hh][Tt]{0,2}|[Hh][Tt][Tt][Pp][Ss]?:?\/?)?$/;

/** Looks at the first bytes and puts them back. */
export function sniff(socket: Socket, { silenceMs, finishMs, signal }: Patience): Promise<Speech> {
  return new Promise((resolve) => {
    const seen = new Growing();
    let timer = silenceMs === null ? undefined : setTimeout(() => settle({ kind: "silent" }), silenceMs);
    const settle = (speech: Speech) => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      socket.off("data", onData).off("end", onEnd).off("close", onClose).pause();
      if (seen.length > 0 && !socket.destroyed && !socket.readableEnded) socket.unshift(seen.bytes);
      resolve(speech);
    };
    const onAbort = () => settle({ kind: "silent" });
    const onData = (bytes: Buffer) => {
      if (seen.length === 0) {
        clearTimeout(timer);
        timer = setTimeout(() => settle({ kind: "bad", why: "its beginning took too long" }), finishMs);
      }
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

/** Bytes that come one by one are not copied anew with each. */
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

/** Null: too little to know. */
function recognize(seen: Uint8Array): Speech | null {
  if (seen.length === 0) return null;
  if (seen[0] === handshake) {
    const hello = readClientHello(seen);
    if (hello.kind === "more") return null;
    return hello.kind === "bad" ? hello : { ...hello, kind: "tls" };
  }
  // Lines before a request are of no use, but allowed.
  const start = Buffer.from(seen.subarray(0, 32))
    .toString("latin1")
    .replace(/^(?:\r?\n)+/, "");
  if (method.test(start)) return { kind: "http" };
  return beginning.test(start) ? null : { kind: "other", resembles: resemblance(seen) };
}

/** Every request begins with a letter of its method, or with an empty line; and no server takes SSH for one. */
function resemblance(seen: Uint8Array): "http" | "ssh" | "nothing" {
  const start = Buffer.from(seen.subarray(0, 4)).toString("latin1");
  if (start === "SSH-") return "ssh";
  return /^[!#$%&'*+.^_`|~0-9A-Za-z\s-]/.test(start) ? "http" : "nothing";
}
