import { isIPv4, isIPv6 } from "node:net";

/**
 * The four or sixteen bytes of an address. Null for what is none, or is not spelled as the system itself spells it:
 * others may read an odd spelling as another address, and one that has two spellings can be named by the wrong one.
 */
export function parseAddress(literal: string): Uint8Array | null {
  // Names are asked about, too, and Node's own expression for version 6 takes a millisecond to compile.
  if (!literal.includes(":")) return isIPv4(literal) ? Uint8Array.from(literal.split("."), Number) : null;
  if (!isIPv6(literal) || literal.includes("%")) return null;
  const words = wordsOf(literal);
  if (literal !== spell(words) && literal !== spellDotted(words)) return null;
  return Uint8Array.from(words.flatMap((word) => [word >> 8, word & 0xff]));
}

/** Eight numbers of 16 bits, of what is known to be an address. */
function wordsOf(literal: string): readonly number[] {
  const undotted = literal.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, ...bytes: readonly string[]) => {
    const [a, b, c, d] = bytes.map(Number) as [number, number, number, number];
    return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
  });
  const [head, tail] = undotted.split("::").map((part) => (part === "" ? [] : part.split(":"))) as [
    string[],
    string[]?,
  ];
  const rest = tail ?? [];
  const zeros = Array<string>(8 - head.length - rest.length).fill("0");
  return [...head, ...zeros, ...rest].map((word) => Number.parseInt(word, 16));
}

/** By RFC 5952: small letters, no leading zeros, and the longest run of zero words, the first of several, left out. */
function spell(words: readonly number[]): string {
  const text = words.map((word) => word.toString(16)).join(":");
  const runs = [...text.matchAll(/(?<![^:])0(?::0)+(?![^:])/g)];
  const [longest] = runs.sort((one, other) => other[0].length - one[0].length);
  if (longest === undefined) return text;
  return `${text.slice(0, longest.index) || ":"}${text.slice(longest.index + longest[0].length) || ":"}`;
}

/** An address of version 4 within one of version 6 has the spelling of its own, too; null where there is none. */
function spellDotted(words: readonly number[]): string | null {
  const [a, b, c, d, e, mark, high, low] = words as [number, number, number, number, number, number, number, number];
  const isEmbedded = (a | b | c | d | e) === 0 && (mark === 0xffff || (mark === 0 && high !== 0));
  if (!isEmbedded) return null;
  return `::${mark === 0 ? "" : "ffff:"}${[high >> 8, high & 0xff, low >> 8, low & 0xff].join(".")}`;
}
