import { Spellings } from "./spellings.ts";

/** Where a value lies in the text. */
export interface Span {
  readonly start: number;
  readonly end: number;
  /** Its own members, where it is an object and they were noted on the way. */
  readonly members?: readonly Member[] | null;
}

/** A member of an object: its name without escapes, where that begins with its quote, and its value. */
export interface Member extends Span {
  readonly name: string;
  readonly isEscaped: boolean;
  readonly at: number;
}

/** Deeper than any message is; readers that recurse have limits of about as much. */
export const mostDepth = 128;
/** Names of one object that are compared one by one; with more, a set is cheaper. */
const fewNames = 16;
/** More names than any object has that somebody means, and more members and items than any message has that matter. */
export const mostNames = 100_000;
export const mostNoted = 250_000;
export const tooMuch = "it has more parts than are looked at";
/** Where nothing is that was to be read. */
const none = -1;
const newline = 0x0a;
const quote = 0x22;
const backslash = 0x5c;
/** The bytes of which a string has any number: all but its end, escapes and control characters. */
const isOrdinary = Uint8Array.from({ length: 256 }, (_, code) =>
  code >= 0x20 && code !== quote && code !== backslash ? 1 : 0,
);
/** How long an escape is, by the byte behind its backslash; 0 where it is none. */
const escapes = new Uint8Array(256);
for (const code of Buffer.from('"\\/bfnrt')) escapes[code] = 2;
escapes[0x75] = 6;
const isHexadecimal = new Uint8Array(256);
for (const code of Buffer.from("0123456789abcdefABCDEF")) isHexadecimal[code] = 1;

/**
 * Reads JSON by the letter and keeps nothing of it but where things are. It holds lines to more than the grammar does:
 * no name twice in one object at any depth, no control character but tabs between values, a bounded depth. What passes
 * here means the same to every reader, whichever of two equal names it takes and however lenient it is.
 *
 * It reads bytes, and texts that it gives are the bytes, each as one character (latin1). Whether they are UTF-8 is for
 * the caller to ask.
 */
export class Scanner {
  #bytes: Buffer = Buffer.alloc(0);
  #view: DataView = new DataView(new ArrayBuffer(0));
  #end = 0;
  #problem = "";
  /** Where the names lie of all objects around the position that have few: those of the innermost last. */
  readonly #names = new Int32Array(2 * fewNames * (mostDepth + 1));
  #nameCount = 0;
  /** Of the string that was read last. */
  #hasEscapes = false;
  /** How many members and items of the line have been noted. */
  #noted = 0;
  readonly #spellings = new Spellings();

  /** What all positions are about from now on: whole lines, the last of them with its newline. */
  open(bytes: Buffer): void {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  byte(at: number): number {
    return this.#bytes[at] as number;
  }

  text(start: number, end: number): string {
    return this.#spellings.read(this.#bytes, start, end);
  }

  /** What was wrong with the text where `scan` gave null. */
  get problem(): string {
    return this.#problem;
  }

  /** The members of the object that the line from there on is, and nothing but it; null where it is none. */
  scan(start: number): Member[] | null {
    this.#noted = 0;
    this.#nameCount = 0;
    const members: Member[] = [];
    let at = this.#skipBlanks(start);
    if (this.#bytes[at] !== 0x7b) return this.#refuse("it is not an object");
    at = this.#object(at, 1, members);
    if (at === none) return null;
    at = this.#skipBlanks(at);
    if (this.#bytes[at] === 0x0d) at += 1;
    if (this.#bytes[at] !== newline) return this.#refuse("something follows the object");
    this.#end = at;
    return members;
  }

  /** Where the line has its newline that was scanned last, and is an object. */
  get end(): number {
    return this.#end;
  }

  /**
   * The members of an object, or the items of a list, that was scanned before as part of a larger one. Null where more
   * has been noted of the line than it may cost.
   */
  members(span: Span): Member[] | null {
    const members: Member[] = [];
    return this.#object(span.start, 1, members) === none ? null : members;
  }

  items(span: Span): Span[] | null {
    const items: Span[] = [];
    return this.#list(span.start, 1, items) === none ? null : items;
  }

  // All that follows is given where something begins, and gives where it ends, or `none`.

  #value(at: number, depth: number): number {
    switch (this.#bytes[at]) {
      case quote:
        return this.#string(at);
      case 0x7b:
        return depth >= mostDepth ? this.#fail("it is nested too deeply") : this.#object(at, depth + 1, null);
      case 0x5b:
        return depth >= mostDepth ? this.#fail("it is nested too deeply") : this.#list(at, depth + 1, null);
      case 0x74:
        return this.#word(at, "true");
      case 0x66:
        return this.#word(at, "false");
      case 0x6e:
        return this.#word(at, "null");
      default:
        return this.#number(at);
    }
  }

  #object(opening: number, depth: number, members: Member[] | null): number {
    const bytes = this.#bytes;
    const first = this.#nameCount;
    let many: Set<string> | null = null;
    let at = this.#skipBlanks(opening + 1);
    if (bytes[at] === 0x7d) return at + 1;
    for (;;) {
      const name = at;
      if (bytes[name] !== quote) return this.#fail("a member has no name");
      at = this.#string(name);
      if (at === none) return none;
      const isEscaped = this.#hasEscapes;
      const nameEnd = at;
      if (many === null && (isEscaped || this.#nameCount - first === fewNames)) many = this.#nameSet(first);
      if (many === null) {
        if (this.#hasName(name, at, first)) return this.#fail("a name is there twice");
      } else {
        const size = many.size;
        if (many.add(this.#meaning(name, at, isEscaped)).size === size) return this.#fail("a name is there twice");
        if (size === mostNames) return this.#fail("an object has too many names");
      }
      at = this.#skipBlanks(at);
      if (bytes[at] !== 0x3a) return this.#fail("a name has no value");
      at = this.#skipBlanks(at + 1);
      if (members === null) {
        at = this.#value(at, depth);
        if (at === none) return none;
      } else {
        const start = at;
        // One level more than was asked for: most that is changed lies there, and need not be scanned once more.
        const inner: Member[] | null = depth === 1 && bytes[at] === 0x7b ? [] : null;
        at = inner === null ? this.#value(at, depth) : this.#object(at, depth + 1, inner);
        if (at === none || !this.#note()) return none;
        const meaning = this.#meaning(name, nameEnd, isEscaped);
        members.push({ name: meaning, isEscaped, at: name, start, end: at, members: inner });
      }
      at = this.#skipBlanks(at);
      if (bytes[at] === 0x7d) {
        this.#nameCount = first;
        return at + 1;
      }
      if (bytes[at] !== 0x2c) return this.#fail("an object does not end");
      at = this.#skipBlanks(at + 1);
    }
  }

  /** What a name means, given with its quotes: an escape may spell a name that is there already. */
  #meaning(start: number, end: number, isEscaped: boolean): string {
    if (!isEscaped) return this.text(start + 1, end - 1);
    return Buffer.from(decodeString(this.text(start, end))).toString("latin1");
  }

  /** Whether one of the names since the first of an object has the same bytes. Takes note of it, too. */
  #hasName(start: number, end: number, first: number): boolean {
    const names = this.#names;
    const length = end - start;
    const count = this.#nameCount;
    for (let index = first; index < count; index += 1) {
      if (names[2 * index + 1] === length && this.#isSame(names[2 * index] as number, start, length)) return true;
    }
    names[2 * count] = start;
    names[2 * count + 1] = length;
    this.#nameCount = count + 1;
    return false;
  }

  #isSame(one: number, other: number, length: number): boolean {
    const bytes = this.#bytes;
    for (let at = 0; at < length; at += 1) if (bytes[one + at] !== bytes[other + at]) return false;
    return true;
  }

  /** The names since the first of an object, none of which has escapes. */
  #nameSet(first: number): Set<string> {
    const names = new Set<string>();
    for (let index = first; index < this.#nameCount; index += 1) {
      const start = this.#names[2 * index] as number;
      names.add(this.#meaning(start, start + (this.#names[2 * index + 1] as number), false));
    }
    return names;
  }

  #list(opening: number, depth: number, items: Span[] | null): number {
    const bytes = this.#bytes;
    let at = this.#skipBlanks(opening + 1);
    if (bytes[at] === 0x5d) return at + 1;
    for (;;) {
      const start = at;
      at = this.#value(at, depth);
      if (at === none) return none;
      if (items !== null) {
        if (!this.#note()) return none;
        items.push({ start, end: at });
      }
      at = this.#skipBlanks(at);
      if (bytes[at] === 0x5d) return at + 1;
      if (bytes[at] !== 0x2c) return this.#fail("a list does not end");
      at = this.#skipBlanks(at + 1);
    }
  }

  /** What is noted is kept in memory, and looked at: a line has no more of it than a bounded share. */
  #note(): boolean {
    this.#noted += 1;
    return this.#noted <= mostNoted || this.#fail(tooMuch) !== none;
  }

  /** From its first quote to behind its last. */
  #string(opening: number): number {
    const bytes = this.#bytes;
    const view = this.#view;
    const pairs = bytes.length - 8;
    let at = opening + 1;
    this.#hasEscapes = false;
    for (;;) {
      // Nearly all that is said is said in strings: they are gone through by words of four bytes, two at a time.
      let marks = 0;
      while (at <= pairs) {
        marks = markOthers(view.getInt32(at, true));
        if (marks !== 0) break;
        marks = markOthers(view.getInt32(at + 4, true));
        at += 4;
        if (marks !== 0) break;
        at += 4;
      }
      if (marks !== 0) at += lowestByte(marks);
      else while (isOrdinary[bytes[at] as number] === 1) at += 1;
      if (bytes[at] !== backslash) break;
      const length = escapes[bytes[at + 1] as number] as number;
      if (length === 0 || (length > 2 && !this.#hasDigits(at + 2))) return this.#fail("a string has an unknown escape");
      this.#hasEscapes = true;
      at += length;
    }
    if (bytes[at] === quote) return at + 1;
    return this.#fail(bytes[at] === newline ? "a string does not end" : "a string has a control character");
  }

  #hasDigits(start: number): boolean {
    for (let at = start; at < start + 4; at += 1) if (isHexadecimal[this.#bytes[at] as number] !== 1) return false;
    return true;
  }

  #number(start: number): number {
    const bytes = this.#bytes;
    let at = bytes[start] === 0x2d ? start + 1 : start;
    const whole = bytes[at] === 0x30 ? at + 1 : this.#digits(at);
    if (whole === at) return this.#fail("a value is none");
    at = whole;
    // What does not end as a number does is no part of it, and is then found where nothing may be.
    if (bytes[at] === 0x2e) at = this.#part(at, at + 1);
    if (bytes[at] !== 0x65 && bytes[at] !== 0x45) return at;
    const sign = bytes[at + 1];
    return this.#part(at, at + (sign === 0x2b || sign === 0x2d ? 2 : 1));
  }

  /** The end of a part with digits from there on; where there are none, the part is not there. */
  #part(start: number, digits: number): number {
    const end = this.#digits(digits);
    return end === digits ? start : end;
  }

  #digits(start: number): number {
    let at = start;
    for (;;) {
      const code = this.#bytes[at] as number;
      if (code < 0x30 || code > 0x39) return at;
      at += 1;
    }
  }

  #word(start: number, word: string): number {
    for (let index = 0; index < word.length; index += 1)
      if (this.#bytes[start + index] !== word.charCodeAt(index)) return this.#fail("a value is none");
    return start + word.length;
  }

  #skipBlanks(start: number): number {
    const bytes = this.#bytes;
    let at = start;
    while ((bytes[at] as number) <= 0x20 && (bytes[at] === 0x20 || bytes[at] === 0x09)) at += 1;
    return at;
  }

  #fail(problem: string): typeof none {
    this.#problem = problem;
    return none;
  }

  #refuse(problem: string): null {
    this.#problem = problem;
    return null;
  }
}

/**
 * Sets the highest bit of each byte of a word that is not ordinary, by arithmetic on all four at once: subtracting lets
 * it appear where the byte was less. With 2 flipped, the quote is the least of all that is not a control character. A
 * borrow may mark bytes above one that is marked, so that only the lowest mark can be relied on.
 */
function markOthers(word: number): number {
  const quotes = word ^ 0x02020202;
  const backslashes = word ^ 0x5c5c5c5c;
  return (((quotes - 0x21212121) & ~quotes) | ((backslashes - 0x01010101) & ~backslashes)) & 0x80808080;
}

function lowestByte(marks: number): number {
  return (31 - Math.clz32(marks & -marks)) >> 3;
}

/** The text of bytes that were read as latin1. */
export function decodeText(latin1: string): string {
  if (/^[ -~]*$/.test(latin1)) return latin1;
  return Buffer.from(latin1, "latin1").toString();
}

/** What a string means, given with its quotes and as latin1. */
export function decodeString(latin1: string): string {
  return JSON.parse(decodeText(latin1)) as string;
}
