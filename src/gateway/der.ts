/**
 * Writes DER, the one binary form of ASN.1 that certificates are made of: only what ours need, and no reader. Whoever
 * reads them is another's program, and tests ask several of those.
 */
const tags = { integer: 0x02, bits: 0x03, octets: 0x04, identifier: 0x06, text: 0x0c, sequence: 0x30, set: 0x31 };
const utcTime = 0x17;
const generalizedTime = 0x18;

/** True, as its content is written where the default is false. */
export const derTrue = Buffer.of(0x01, 0x01, 0xff);

export function derElement(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const length = contents.reduce((sum, content) => sum + content.length, 0);
  return Buffer.concat([Buffer.of(tag, ...lengthBytes(length)), ...contents]);
}

function lengthBytes(length: number): readonly number[] {
  if (length < 0x80) return [length];
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest >>>= 8) bytes.unshift(rest & 0xff);
  return [0x80 | bytes.length, ...bytes];
}

export function derSequence(...contents: readonly Uint8Array[]): Buffer {
  return derElement(tags.sequence, ...contents);
}

export function derSet(...contents: readonly Uint8Array[]): Buffer {
  return derElement(tags.set, ...contents);
}

/** A number that is not negative, from its bytes: written with the fewest that leave it so. */
export function derInteger(bytes: Uint8Array): Buffer {
  const first = bytes.findIndex((byte) => byte !== 0);
  const digits = first === -1 ? Buffer.of(0) : bytes.subarray(first);
  return derElement(tags.integer, (digits[0] as number) < 0x80 ? Buffer.alloc(0) : Buffer.of(0), digits);
}

/** `unused` bits at the end do not count. */
export function derBits(bytes: Uint8Array, unused = 0): Buffer {
  return derElement(tags.bits, Buffer.of(unused), bytes);
}

export function derOctets(...contents: readonly Uint8Array[]): Buffer {
  return derElement(tags.octets, ...contents);
}

/** An object identifier, as "2.5.29.15". */
export function derIdentifier(dotted: string): Buffer {
  const [first, second, ...rest] = dotted.split(".").map(Number) as [number, number, ...number[]];
  return derElement(tags.identifier, Buffer.from([first * 40 + second, ...rest].flatMap(arcBytes)));
}

/** Seven bits a byte; all but the last byte have the eighth set. */
function arcBytes(arc: number): readonly number[] {
  const bytes = [arc & 0x7f];
  for (let rest = arc >>> 7; rest > 0; rest >>>= 7) bytes.unshift(0x80 | (rest & 0x7f));
  return bytes;
}

export function derText(text: string): Buffer {
  return derElement(tags.text, Buffer.from(text));
}

/** To the second, in UTC. The years from 1950 to 2049 have a short form, and must use it. */
export function derTime(at: Date): Buffer {
  const written = at.toISOString();
  const digits = `${written.slice(0, 10)}${written.slice(11, 19)}Z`.replaceAll("-", "").replaceAll(":", "");
  const isShort = at.getUTCFullYear() >= 1950 && at.getUTCFullYear() < 2050;
  return isShort ? derElement(utcTime, Buffer.from(digits.slice(2))) : derElement(generalizedTime, Buffer.from(digits));
}

/** A field that is told from others by its number: `around` whole elements, or else in place of one's own tag. */
export function derField(number: number, around: boolean, ...contents: readonly Uint8Array[]): Buffer {
  return derElement((around ? 0xa0 : 0x80) | number, ...contents);
}
