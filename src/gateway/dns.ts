import { bounds } from "./limits.ts";

/** A question, with its name in lower case and without the dot at its end. */
export interface Question {
  readonly name: string;
  readonly type: number;
}

export interface Answer {
  readonly reply: Uint8Array;
  /** Null where it was not understood. */
  readonly question: Question | null;
}

const headerSize = 12;
const mostName = 255;
const mostLabel = 63;
/** For how long an answer may be kept. It would be true longer, but a client outlives its session. */
const ttl = 60;
/** What fits through every network. Replies are far smaller. */
const udpSize = 1232;

const codes = { none: 0, format: 1, unknownName: 3, notImplemented: 4, version: 16 } as const;
type Code = (typeof codes)[keyof typeof codes];
const types = { a: 1, aaaa: 28, options: 41 } as const;
const internet = 1;

/**
 * Answers by itself, always: nothing that a box asks is passed on to anybody. Every name that `addressOf` knows exists,
 * with one address of version 4 and with nothing else; what it gives null for does not exist. A reply is never more
 * than 33 bytes longer than its query. Null, and no reply, for what is no query at all.
 */
export function answerQuery(packet: Uint8Array, addressOf: (name: string) => string | null): Answer | null {
  const query = Buffer.from(packet.buffer, packet.byteOffset, packet.length);
  // A reply to a reply would be answered in turn.
  if (query.length < headerSize || (query.readUInt8(2) & 0x80) !== 0) return null;
  if ((query.readUInt8(2) & 0x78) !== 0) return { reply: reply(query, codes.notImplemented), question: null };
  const reading = readQuery(query);
  if (reading === null) return { reply: reply(query, codes.format), question: null };
  const { end, name, type, kind, version } = reading;
  const echo = query.subarray(headerSize, end);
  const say = (code: Code, address: string | null = null) => ({
    reply: reply(query, code, { echo, address, extended: version !== null }),
    question: { name, type },
  });
  if (version !== null && version > 0) return say(codes.version);
  if (kind !== internet) return say(codes.notImplemented);
  if (name === "" || (type !== types.a && type !== types.aaaa)) return say(codes.none);
  // RFC 6761: nobody is asked where this is.
  const address = /(?:^|\.)localhost$/.test(name) ? "127.0.0.1" : addressOf(name);
  if (address === null) return say(codes.unknownName);
  return say(codes.none, type === types.a ? address : null);
}

interface Reading extends Question {
  /** Where the question ends. */
  readonly end: number;
  readonly kind: number;
  /** Of the extended protocol; null where it is not spoken. */
  readonly version: number | null;
}

/** One question, and the options of EDNS or nothing after it. Null for everything else. */
function readQuery(query: Buffer): Reading | null {
  if (query.length > bounds.dnsQueryBytes) return null;
  const [questions, answers, authorities, additions] = [4, 6, 8, 10].map((at) => query.readUInt16BE(at)) as Counts;
  if (questions !== 1 || answers !== 0 || authorities !== 0 || additions > 1) return null;
  const read = readName(query);
  if (read === null || query.length < read.end + 4) return null;
  const end = read.end + 4;
  const question = { name: read.name, type: query.readUInt16BE(read.end), kind: query.readUInt16BE(read.end + 2), end };
  if (additions === 0) return query.length === end ? { ...question, version: null } : null;
  const options = query.subarray(end);
  if (options.length < 11 || options.readUInt8(0) !== 0 || options.readUInt16BE(1) !== types.options) return null;
  return options.length === 11 + options.readUInt16BE(9) ? { ...question, version: options.readUInt8(6) } : null;
}

type Counts = [questions: number, answers: number, authorities: number, additions: number];

/** A name in full: where others point back to one before, a question has none before it. */
function readName(query: Buffer): { readonly name: string; readonly end: number } | null {
  const labels: string[] = [];
  let at = headerSize;
  while (at < query.length) {
    const length = query.readUInt8(at);
    const end = at + 1 + length;
    // With the zero that is to follow.
    if (length > mostLabel || end - headerSize + (length === 0 ? 0 : 1) > mostName) return null;
    if (length === 0) return { name: labels.join(".").toLowerCase(), end };
    const label = query.toString("latin1", at + 1, end);
    // A dot within a label would make two names look alike.
    if (!/^[!-\-/-~]+$/.test(label)) return null;
    labels.push(label);
    at = end;
  }
  return null;
}

interface Content {
  /** The question, byte for byte: clients know their own by its capitals. */
  readonly echo: Buffer;
  readonly address: string | null;
  readonly extended: boolean;
}

function reply(query: Buffer, code: Code, content: Content | null = null): Buffer {
  const header = Buffer.alloc(headerSize);
  query.copy(header, 0, 0, 2);
  // A reply; to what was asked, recursively if so it was; and recursion is to be had.
  header.writeUInt8(0x80 | (query.readUInt8(2) & 0x79), 2);
  header.writeUInt8(0x80 | (query.readUInt8(3) & 0x10) | (code & 0x0f), 3);
  if (content === null) return header;
  const { echo, address, extended } = content;
  const isNegative = address === null && (code === codes.none || code === codes.unknownName);
  for (const [index, isThere] of [true, address !== null, isNegative, extended].entries()) {
    header.writeUInt16BE(isThere ? 1 : 0, 4 + 2 * index);
  }
  return Buffer.concat([
    ...[header, echo],
    ...(address === null ? [] : [record("c00c", types.a, internet, ttl, addressBytes(address))]),
    ...(isNegative ? [startOfAuthority] : []),
    ...(extended ? [record("00", types.options, udpSize, (code >> 4) << 24, Buffer.alloc(0))] : []),
  ]);
}

function record(name: string, type: number, kind: number, seconds: number, content: Uint8Array): Buffer {
  const numbers = Buffer.alloc(10);
  numbers.writeUInt16BE(type, 0);
  numbers.writeUInt16BE(kind, 2);
  numbers.writeUInt32BE(seconds, 4);
  numbers.writeUInt16BE(content.length, 8);
  return Buffer.concat([Buffer.from(name, "hex"), numbers, content]);
}

function addressBytes(address: string): Uint8Array {
  return Uint8Array.from(address.split("."), Number);
}

/**
 * Without it, nobody may remember that there is nothing. The root's: it lies above every name, and takes one byte.
 * Two names, serial, refresh, retry, expiry, and for how long nothing stays nothing.
 */
const startOfAuthority = record("00", 6, internet, ttl, startContent());

function startContent(): Buffer {
  const content = Buffer.alloc(22);
  for (const [index, number] of [1, ttl, ttl, ttl, ttl].entries()) content.writeUInt32BE(number, 2 + 4 * index);
  return content;
}

/**
 * Cuts what comes over a connection into queries. One of a length that no query has comes out empty, which is none;
 * after it nothing comes out any more.
 */
export class DnsStream {
  #held: Buffer = Buffer.alloc(0);
  #isBroken = false;

  push(bytes: Uint8Array): readonly Uint8Array[] {
    if (this.#isBroken) return [];
    this.#held = Buffer.concat([this.#held, bytes]);
    const packets: Uint8Array[] = [];
    let at = 0;
    while (this.#held.length >= at + 2) {
      const length = this.#held.readUInt16BE(at);
      if (length < headerSize || length > bounds.dnsQueryBytes) {
        this.#isBroken = true;
        this.#held = Buffer.alloc(0);
        return [...packets, Buffer.alloc(0)];
      }
      if (this.#held.length < at + 2 + length) break;
      packets.push(this.#held.subarray(at + 2, at + 2 + length));
      at += 2 + length;
    }
    // A copy, so that a short rest does not keep all that came before it.
    this.#held = Buffer.from(this.#held.subarray(at));
    return packets;
  }
}
