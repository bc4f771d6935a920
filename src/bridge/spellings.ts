const most = 256;
const longest = 32;

/**
 * Bytes as text, each byte as one character (latin1). Messages say the same names over and over: short texts that come
 * again are not made again, and whoever compares them finds the very same one.
 */
export class Spellings {
  readonly #texts: string[] = Array.from({ length: most }, () => "");
  /** The bytes of each, from a multiple of the longest on. */
  readonly #bytes = new Uint8Array(most * longest);

  read(bytes: Buffer, start: number, end: number): string {
    const length = end - start;
    if (length > longest) return bytes.toString("latin1", start, end);
    const place = (31 * (bytes[start] as number) + 7 * (bytes[end - 1] as number) + length) % most;
    const known = this.#texts[place] as string;
    if (known.length === length && this.#isAt(place * longest, bytes, start, length)) return known;
    const text = bytes.toString("latin1", start, end);
    this.#texts[place] = text;
    for (let at = 0; at < length; at += 1) this.#bytes[place * longest + at] = bytes[start + at] as number;
    return text;
  }

  #isAt(from: number, bytes: Buffer, start: number, length: number): boolean {
    for (let at = 0; at < length; at += 1) if (this.#bytes[from + at] !== bytes[start + at]) return false;
    return true;
  }
}
