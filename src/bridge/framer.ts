const newline = 0x0a;

/**
 * Cuts a stream into blocks of whole lines. Most blocks are views of the chunk that was fed; only a line that came in
 * pieces is put together. A line beyond the limit is skipped up to its end, and what follows it is read as usual: no
 * more than one line is ever held, however it arrives.
 */
export class Framer {
  readonly #limit: number;
  readonly #skipped: (bytes: number, first: number) => void;
  /** The beginning of a line. It grows by doubling and is filled by copies, so that many small pieces stay cheap. */
  #held: Buffer = Buffer.alloc(0);
  /** How long that line is so far, and its first byte. */
  #length = 0;
  #first = newline;

  /** `limit` is the longest line, without its newline. `skipped` is told of each longer one and how it began. */
  constructor(limit: number, skipped: (bytes: number, first: number) => void) {
    this.#limit = limit;
    this.#skipped = skipped;
  }

  /** Blocks of whole lines, each with its newline. */
  push(chunk: Buffer): Buffer[] {
    const last = chunk.lastIndexOf(newline);
    const blocks: Buffer[] = [];
    let start = 0;
    if (this.#length > 0 && last !== -1) {
      start = chunk.indexOf(newline) + 1;
      this.#keep(chunk.subarray(0, start - 1));
      const line = this.#complete();
      if (line !== null) blocks.push(line);
    }
    const block = chunk.subarray(start, last + 1);
    // A block that is no longer than one line may be has no line that is.
    if (block.length > this.#limit) blocks.push(...this.#within(block));
    else if (block.length > 0) blocks.push(block);
    this.#keep(chunk.subarray(last + 1));
    return blocks;
  }

  /** How many bytes wait for the end of their line. */
  rest(): number {
    return this.#length;
  }

  #keep(piece: Buffer): void {
    if (this.#length === 0) this.#first = piece[0] ?? newline;
    const length = this.#length + piece.length;
    if (length > this.#limit) {
      this.#held = Buffer.alloc(0);
    } else {
      // One more, for the newline.
      if (length + 1 > this.#held.length) {
        const larger = Buffer.allocUnsafe(Math.min(2 * (length + 1), this.#limit + 1));
        this.#held.copy(larger, 0, 0, this.#length);
        this.#held = larger;
      }
      piece.copy(this.#held, this.#length);
    }
    this.#length = length;
  }

  #complete(): Buffer | null {
    const held = this.#held;
    const length = this.#length;
    this.#held = Buffer.alloc(0);
    this.#length = 0;
    if (length > this.#limit) {
      this.#skipped(length, this.#first);
      return null;
    }
    held[length] = newline;
    return held.subarray(0, length + 1);
  }

  /** The lines of a block that may hold some beyond the limit. */
  *#within(block: Buffer): Generator<Buffer> {
    for (let start = 0; start < block.length; ) {
      const end = block.indexOf(newline, start);
      if (end - start > this.#limit) this.#skipped(end - start, block[start] as number);
      else yield block.subarray(start, end + 1);
      start = end + 1;
    }
  }
}
