import { canonicalHost } from "../policy/hosts.ts";
import { bounds } from "./limits.ts";

export type HelloReading =
  | { readonly kind: "more" }
  | {
      readonly kind: "hello";
      /** Canonical; null where none is named. Of an encrypted hello it is the outer one: where it really leads. */
      readonly serverName: string | null;
      readonly alpn: readonly string[];
    }
  | { readonly kind: "bad"; readonly why: string };

const recordHeader = 5;
const mostRecord = 16_384;
const messageHeader = 4;

const handshakeRecord = 22;
const clientHello = 1;
const extensions = { serverName: 0, alpn: 16 } as const;
const hostName = 0;

/**
 * Reads the first message of a TLS client from all that it has sent so far. What others may read otherwise is bad. It
 * is asked again whenever more has come, and so does little before the end has.
 */
export function readClientHello(bytes: Uint8Array): HelloReading {
  const fragments: Uint8Array[] = [];
  let gathered = 0;
  for (let at = 0; at < bytes.length; ) {
    const [type, major = 3, minor = 0, , , first = clientHello] = bytes.subarray(at, at + recordHeader + 1);
    if (type !== handshakeRecord || major !== 3 || minor > 4) return bad("it is not the beginning of TLS");
    if (at === 0 && first !== clientHello) return bad("it does not begin with a hello");
    if (fragments.length === bounds.helloRecords) return bad("its hello is in too many pieces");
    const record = new Cursor(bytes.subarray(at + 3));
    const fragment = record.vector(2);
    if (record.failed) break;
    if (fragment.length === 0 || fragment.length > mostRecord) return bad("it has a record of a forbidden length");
    fragments.push(fragment);
    gathered += fragment.length;
    at += recordHeader + fragment.length;
    const expected = expectedLength(fragments);
    if (expected > bounds.helloBytes) return bad("its hello is too long");
    if (gathered > expected) return bad("something follows its hello");
    if (gathered === expected) return readHello(Buffer.concat(fragments).subarray(messageHeader));
  }
  return bytes.length < bounds.helloBytes ? { kind: "more" } : bad("its hello is too long");
}

/** How long the message will be, with its header; as far as its header is there. */
function expectedLength(fragments: readonly Uint8Array[]): number {
  const [, high = 0, middle = 0, low = 0] = fragments
    .slice(0, messageHeader)
    .flatMap((each) => [...each.subarray(0, messageHeader)]);
  return messageHeader + ((high << 16) | (middle << 8) | low);
}

function readHello(message: Uint8Array): HelloReading {
  const hello = new Cursor(message);
  // Version, random bytes, session, ciphers, compressions.
  hello.take(2 + 32);
  hello.vector(1);
  hello.vector(2);
  hello.vector(1);
  const list = new Cursor(hello.left === 0 ? none : hello.vector(2));
  const found = new Map<number, Uint8Array>();
  while (list.left > 0) {
    const type = list.number(2);
    const content = list.vector(2);
    if (found.has(type)) return bad(`its hello has the extension ${type} twice`);
    found.set(type, content);
  }
  if (hello.failed || list.failed || hello.left > 0) return bad("its hello is damaged");
  const name = found.get(extensions.serverName);
  const serverName = name === undefined ? null : readServerName(name);
  if (serverName === "") return bad("its hello names no host, or more than one, or one that is spelled oddly");
  const protocols = found.get(extensions.alpn);
  const alpn = protocols === undefined ? [] : readProtocols(protocols);
  return alpn === null ? bad("its list of protocols is damaged") : { kind: "hello", serverName, alpn };
}

/** The one host that the list names; nothing where it is any other list. */
function readServerName(content: Uint8Array): string {
  const extension = new Cursor(content);
  const list = new Cursor(extension.vector(2));
  const type = list.number(1);
  const name = Buffer.from(list.vector(2)).toString("latin1");
  const isOdd = extension.failed || list.failed || extension.left > 0 || list.left > 0 || type !== hostName;
  return isOdd ? "" : (canonicalHost(name) ?? "");
}

function readProtocols(content: Uint8Array): readonly string[] | null {
  const extension = new Cursor(content);
  const list = new Cursor(extension.vector(2));
  const protocols: string[] = [];
  while (list.left > 0) protocols.push(Buffer.from(list.vector(1)).toString("latin1"));
  const isDamaged = extension.failed || list.failed || extension.left > 0 || protocols.length === 0;
  return isDamaged || protocols.includes("") ? null : protocols;
}

const none = new Uint8Array(0);

/** Reads on and on. Beyond the end there is nothing, and it has failed. */
class Cursor {
  readonly #bytes: Uint8Array;
  #at = 0;
  failed = false;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get left(): number {
    return this.#bytes.length - this.#at;
  }

  take(count: number): Uint8Array {
    if (count > this.left) {
      this.failed = true;
      this.#at = this.#bytes.length;
      return none;
    }
    this.#at += count;
    return this.#bytes.subarray(this.#at - count, this.#at);
  }

  number(size: number): number {
    return this.take(size).reduce((number, byte) => number * 256 + byte, 0);
  }

  /** As many bytes as the number before them says. */
  vector(size: number): Uint8Array {
    return this.take(this.number(size));
  }
}

function bad(why: string): HelloReading {
  return { kind: "bad", why };
}
