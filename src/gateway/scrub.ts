import type { HeaderList } from "./headers.ts";

/** What is replaced by what. Of the same length, as surrogates are, what was announced as the length stays true. */
export interface Swap {
  readonly real: string;
  readonly surrogate: string;
}

/**
 * On hosts that secrets are bound to, answers are asked for as they are: in a compressed one nothing would be found.
 * The header is replaced and not only left out, which would mean any encoding.
 */
export function askForIdentity(headers: HeaderList): HeaderList {
  return [...headers.filter(([name]) => name.toLowerCase() !== "accept-encoding"), ["accept-encoding", "identity"]];
}

/** Whether an answer's body is as it was asked for. Any other must not be passed on where secrets are bound. */
export function isIdentity(headers: HeaderList): boolean {
  return headers.every(
    ([name, value]) => name.toLowerCase() !== "content-encoding" || /^(?:[ \t,]|identity)*$/i.test(value),
  );
}

/** Turns real values back, wherever in a header's value they stand. A header that is named by one is left out. */
export function scrubHeaders(secrets: readonly Swap[], headers: HeaderList): HeaderList {
  const scrubText = textScrubber(secrets);
  // Names lose their case on the way.
  const reals = usable(secrets).map(({ real }) => real.toLowerCase());
  return headers
    .filter(([name]) => !reals.some((real) => name.toLowerCase().includes(real)))
    .map(([name, value]) => [name, scrubText(value)]);
}

/** The same for text: from left to right, the longest value first. */
export function textScrubber(secrets: readonly Swap[]): (text: string) => string {
  const swaps = new Map(usable(secrets).map(({ real, surrogate }) => [real, surrogate]));
  if (swaps.size === 0) return (text) => text;
  const pattern = new RegExp([...swaps.keys()].map((real) => real.replace(/\W/g, "\\$&")).join("|"), "g");
  return (text) => text.replace(pattern, (real) => swaps.get(real) as string);
}

/** Longest first, each value once. */
function usable(secrets: readonly Swap[]): readonly Swap[] {
  const once = new Map(secrets.filter(({ real }) => real !== "").map((swap) => [swap.real, swap]));
  return [...once.values()].sort((a, b) => b.real.length - a.real.length);
}

interface Needle {
  readonly from: Buffer;
  readonly to: Buffer;
}

/**
 * Turns real values back in a stream of bytes. However it is cut into chunks, the result is the same. Only what may be
 * the beginning of a value is held back until more has come, so that an answer which arrives word by word is passed on
 * word by word.
 */
export class Scrubber {
  readonly #needles: readonly Needle[];
  #held: Buffer = Buffer.alloc(0);

  constructor(secrets: readonly Swap[]) {
    this.#needles = usable(secrets)
      .map(({ real, surrogate }) => ({ from: Buffer.from(real), to: Buffer.from(surrogate) }))
      .sort((a, b) => b.from.length - a.from.length);
  }

  /** What can be passed on by now. Often the chunk itself. */
  push(chunk: Buffer): Buffer {
    const all = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    return this.#replace(all, (from) => this.#openingIn(all, from));
  }

  /** What was held back, at the end of the stream. */
  flush(): Buffer {
    const rest = this.#held;
    return this.#replace(rest, () => rest.length);
  }

  /** What was held back, as it is, for whoever goes on in this one's place. */
  release(): Buffer {
    const held = this.#held;
    this.#held = Buffer.alloc(0);
    return held;
  }

  /** Replaces all that begins before the place where something may still be unfinished, and holds back the rest. */
  #replace(all: Buffer, openingFrom: (at: number) => number): Buffer {
    const parts: Buffer[] = [];
    const next = this.#needles.map(({ from }) => all.indexOf(from));
    let at = 0;
    let opening = openingFrom(0);
    for (;;) {
      const found = this.#firstOf(next, all, at);
      if (found === null || found.begins >= opening) break;
      parts.push(all.subarray(at, found.begins), found.needle.to);
      at = found.begins + found.needle.from.length;
      if (opening < at) opening = openingFrom(at);
    }
    this.#held = opening === all.length ? Buffer.alloc(0) : Buffer.from(all.subarray(opening));
    const last = all.subarray(at, opening);
    return parts.length === 0 ? last : Buffer.concat([...parts, last]);
  }

  /** The leftmost value from here on, and of several that begin there the longest. */
  #firstOf(next: number[], all: Buffer, at: number): { readonly begins: number; readonly needle: Needle } | null {
    let first: { begins: number; needle: Needle } | null = null;
    for (const [number, needle] of this.#needles.entries()) {
      let begins = next[number] as number;
      if (begins >= 0 && begins < at) {
        begins = all.indexOf(needle.from, at);
        next[number] = begins;
      }
      if (begins >= 0 && (first === null || begins < first.begins)) first = { begins, needle };
    }
    return first;
  }

  /** Where the end of the bytes is the beginning of a value; their length where it is not. */
  #openingIn(all: Buffer, from: number): number {
    const longest = this.#needles[0]?.from.length ?? 0;
    for (let at = Math.max(from, all.length - longest + 1); at < all.length; at++) {
      const left = all.length - at;
      const isOpening = this.#needles.some(
        (needle) =>
          needle.from[0] === all[at] && left < needle.from.length && all.compare(needle.from, 0, left, at) === 0,
      );
      if (isOpening) return at;
    }
    return all.length;
  }
}
