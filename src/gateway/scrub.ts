import type { HeaderList } from "./headers.ts";
import { fewestBits, type Needle, plainNeedle, secretNeedle } from "./needle.ts";
import { type Shape, shapeOf } from "./surrogate.ts";

/** What is replaced by what. Of the same length, as surrogates are, what was announced as the length stays true. */
export interface Swap {
  readonly real: string;
  readonly surrogate: string;
  /** What the box knows of the real value. Default: what its surrogate tells. */
  readonly shape?: Shape;
}

/** What answers are searched for. */
export function secretNeedles(secrets: readonly Swap[]): readonly Needle[] {
  return usable(secrets).flatMap(({ real, surrogate, shape = shapeOf(real) }) =>
    shape.bits < fewestBits || surrogate.length !== real.length ? [] : [secretNeedle(real, surrogate, shape)],
  );
}

/** What is looked for where the box does not watch. */
export function plainNeedles(swaps: readonly Swap[]): readonly Needle[] {
  return usable(swaps).map(({ real, surrogate }) => plainNeedle(real, surrogate));
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
export function scrubHeaders(needles: readonly Needle[], headers: HeaderList): HeaderList {
  return headers
    .filter(([name]) => !needles.some(({ from }) => isNamedBy(name, from)))
    .map(([name, value]) => [name, scrubText(needles, value)]);
}

/** Names lose their case on the way. Every place is compared to its end, so that the time tells nothing. */
function isNamedBy(name: string, from: Buffer): boolean {
  if (name.length < from.length) return false;
  const [written, wanted] = [Buffer.from(name.toLowerCase(), "latin1"), from.toString("latin1").toLowerCase()];
  let isThere = false;
  for (let at = 0; at + wanted.length <= written.length; at++) {
    let difference = 0;
    for (let place = 0; place < wanted.length; place++) {
      difference |= (written[at + place] as number) ^ wanted.charCodeAt(place);
    }
    isThere = difference === 0 || isThere;
  }
  return isThere;
}

/** The same for a text that the box sees. */
export function scrubText(needles: readonly Needle[], value: string): string {
  if (!needles.some(({ from }) => from.length <= value.length)) return value;
  const scrubber = new Scrubber(needles);
  const bytes = Buffer.from(value, "latin1");
  const scrubbed = Buffer.concat([scrubber.push(bytes), scrubber.flush()]);
  return scrubbed.equals(bytes) ? value : scrubbed.toString("latin1");
}

/** Turns values back in a text that the box does not see: from left to right, the longest first. */
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

/**
 * Turns real values back in a stream of bytes. Of what may be the beginning of a value, as much waits for what follows as
 * cannot well stand in an ordinary text, so that an answer which arrives word by word is passed on word by word. What
 * was passed on is remembered: where a value turns out to have begun in it, the rest is turned back.
 */
export class Scrubber {
  readonly #needles: readonly Needle[];
  /** What may be the beginning of a value, of which the first bytes have been passed on. */
  #kept: Buffer = Buffer.alloc(0);
  #passed = 0;

  constructor(needles: readonly Needle[]) {
    this.#needles = needles.toSorted((a, b) => b.from.length - a.from.length);
  }

  /** What can be passed on by now. Often the chunk itself. */
  push(chunk: Buffer): Buffer {
    return this.#replace(this.#kept.length === 0 ? chunk : Buffer.concat([this.#kept, chunk]), false);
  }

  /** What was held back, at the end of the stream. */
  flush(): Buffer {
    return this.#replace(this.#kept, true);
  }

  /** What was held back, as it is, for whoever goes on in this one's place. */
  release(): Buffer {
    const held = this.#kept.subarray(this.#passed);
    this.#kept = Buffer.alloc(0);
    this.#passed = 0;
    return held;
  }

  /** Replaces all that begins before the place where something may still be unfinished, and holds back the rest. */
  #replace(all: Buffer, isEnd: boolean): Buffer {
    const parts: Buffer[] = [];
    const next = this.#needles.map((needle) => needle.find(all, 0));
    const openingFrom = (at: number) => (isEnd ? all.length : this.#beginningIn(all, at, ({ holdsFrom }) => holdsFrom));
    let opening = openingFrom(0);
    let searched = 0;
    let at = this.#passed;
    for (;;) {
      const found = this.#firstOf(next, all, searched);
      if (found === null || found.begins >= opening) break;
      const { begins, needle } = found;
      if (begins >= at) parts.push(all.subarray(at, begins), needle.to);
      else parts.push(needle.to.subarray(at - begins));
      searched = at = begins + needle.from.length;
      if (opening < at) opening = openingFrom(at);
    }
    const held = Math.max(opening, at);
    const begun = isEnd
      ? all.length
      : Math.min(
          held,
          this.#beginningIn(all, searched, () => 1),
        );
    this.#kept = begun === all.length ? Buffer.alloc(0) : Buffer.from(all.subarray(begun));
    this.#passed = Math.min(held, all.length) - begun;
    const last = all.subarray(at, held);
    return parts.length === 0 ? last : Buffer.concat([...parts, last]);
  }

  /** The leftmost value from here on, and of several that begin there the longest. */
  #firstOf(next: number[], all: Buffer, at: number): { readonly begins: number; readonly needle: Needle } | null {
    let first: { begins: number; needle: Needle } | null = null;
    for (const [number, needle] of this.#needles.entries()) {
      let begins = next[number] as number;
      if (begins >= 0 && begins < at) {
        begins = needle.find(all, at);
        next[number] = begins;
      }
      if (begins >= 0 && (first === null || begins < first.begins)) first = { begins, needle };
    }
    return first;
  }

  /** Where the end of the bytes may be the beginning of a value; their length where it is not. */
  #beginningIn(all: Buffer, at: number, fewest: (needle: Needle) => number): number {
    return Math.min(all.length, ...this.#needles.map((needle) => needle.beginningIn(all, at, fewest(needle))));
  }
}
