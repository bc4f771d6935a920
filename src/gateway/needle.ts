import type { Shape } from "./surrogate.ts";

/** A value that is looked for in bytes, and what is put in its place. */
export interface Needle {
  readonly from: Buffer;
  readonly to: Buffer;
  /** So many bytes that may be its beginning are not passed on before what follows them is known. */
  readonly holdsFrom: number;
  /** Where the value next stands whole; -1 where it does not. */
  find(all: Buffer, from: number): number;
  /** Where the last bytes begin that may be its beginning, and are so many or more; where all ends, if none are. */
  beginningIn(all: Buffer, from: number, fewest: number): number;
}

/** For where the box does not watch: any beginning of the value waits for its end. */
export function plainNeedle(real: string, to: string): Needle {
  const from = Buffer.from(real);
  const letters = Array.from(from, (byte) => Buffer.from([byte]));
  return new ShapedNeedle(from, Buffer.from(to), letters, 1);
}

/** So many bytes of its shape stand in an ordinary text by chance, fewer or more; a prefix that everybody knows does not. */
const tellingBytes = 12;
const fewestTelling = 8;
const tellingPrefix = 3;

/**
 * Looks for a secret where the box watches what is passed on, and when. Only the shape, which the box knows, decides what
 * is compared and what waits, so that a right guess at a part of the secret is treated as a wrong one. Where something of
 * that shape stands whole, all of it is compared in a time that does not depend on how much of it is right.
 */
export function secretNeedle(real: string, to: string, shape: Shape): Needle {
  const { places } = shape;
  const alphabets = places.map((alphabet) => Buffer.from(alphabet, "latin1"));
  return new ShapedNeedle(Buffer.from(real, "latin1"), Buffer.from(to, "latin1"), alphabets, holdsFromOf(shape));
}

/**
 * That a value is turned back tells the box that it has guessed all of it. With fewer bits that it does not know, an
 * agent could have every possible value come back to it in one long session.
 */
export const fewestBits = 60;

/** What a server that repeats the secret in pieces gives away is less than this, and leaves enough to be guessed. */
function holdsFromOf({ places, bits }: Shape): number {
  const known = knownLength(places);
  if (known >= tellingPrefix) return Math.min(known, tellingBytes);
  let holdsFrom = fewestTelling;
  const bitsBefore = (end: number) => places.slice(0, end).reduce((sum, { length }) => sum + Math.log2(length), 0);
  while (holdsFrom < tellingBytes && bits - bitsBefore(holdsFrom) >= fewestBits) holdsFrom += 1;
  return holdsFrom;
}

function knownLength(places: readonly { readonly length: number }[]): number {
  const open = places.findIndex(({ length }) => length > 1);
  return open < 0 ? places.length : open;
}

class ShapedNeedle implements Needle {
  readonly from: Buffer;
  readonly to: Buffer;
  readonly holdsFrom: number;
  /** What it begins with, as everybody knows. */
  readonly #prefix: Buffer;
  /** For each byte, the alphabets that it is in, each a bit; for each place, the bit of its alphabet. */
  readonly #kinds = new Int32Array(256);
  readonly #places: Int32Array;

  constructor(from: Buffer, to: Buffer, alphabets: readonly Buffer[], holdsFrom: number) {
    this.from = from;
    this.to = to;
    this.holdsFrom = holdsFrom;
    this.#prefix = from.subarray(0, knownLength(alphabets));
    const bits = new Map<string, number>();
    this.#places = Int32Array.from(alphabets, (alphabet) => {
      const key = alphabet.toString("latin1");
      // Where there are more of them than bits, the last bit stands for several: then more is compared than needs be.
      const bit = bits.get(key) ?? 1 << Math.min(bits.size, 31);
      bits.set(key, bit);
      for (const byte of alphabet) this.#kinds[byte] = (this.#kinds[byte] as number) | bit;
      return bit;
    });
  }

  find(all: Buffer, from: number): number {
    for (let begins = this.#next(all, from); begins >= 0; begins = this.#next(all, begins + 1)) {
      if (this.#isAt(all, begins)) return begins;
    }
    return -1;
  }

  beginningIn(all: Buffer, from: number, fewest: number): number {
    for (let at = Math.max(from, all.length - this.from.length + 1); at <= all.length - fewest; at++) {
      if (this.#fits(all, at, all.length - at)) return at;
    }
    return all.length;
  }

  /** The next place where something of its shape stands. */
  #next(all: Buffer, from: number): number {
    if (this.#prefix.length === 0) return this.#nextRun(all, from);
    const { length } = this.from;
    let at = all.indexOf(this.#prefix, from);
    while (at >= 0 && !(at + length <= all.length && this.#fits(all, at, length))) {
      at = all.indexOf(this.#prefix, at + 1);
    }
    return at;
  }

  /** The same without a prefix. Where a byte stands that has no place in it, it can only begin behind that. */
  #nextRun(all: Buffer, from: number): number {
    const kinds = this.#kinds;
    const first = this.#places[0] as number;
    const { length } = this.from;
    let checked = from;
    for (let at = from; at + length <= all.length; at++) {
      let last = at + length - 1;
      while (last >= checked && kinds[all[last] as number] !== 0) last--;
      const isAlien = last >= checked;
      checked = isAlien ? last + 1 : at + length;
      if (isAlien) at = last;
      else if (((kinds[all[at] as number] as number) & first) !== 0 && this.#fits(all, at, length)) return at;
    }
    return -1;
  }

  #fits(all: Buffer, at: number, length: number): boolean {
    const kinds = this.#kinds;
    const places = this.#places;
    for (let place = 0; place < length; place++) {
      if (((kinds[all[at + place] as number] as number) & (places[place] as number)) === 0) return false;
    }
    return true;
  }

  /** To its end, however early it differs. */
  #isAt(all: Buffer, at: number): boolean {
    const { from } = this;
    let difference = 0;
    for (let place = 0; place < from.length; place++)
      difference |= (all[at + place] as number) ^ (from[place] as number);
    return difference === 0;
  }
}
