import { SessionError } from "../errors.ts";

const newline = 0x0a;

/**
 * Takes bytes as they come and gives lines, one at a time: a connection may change its protocol after a line, and then
 * what follows is not lines any more. What one line may hold is bounded.
 */
export class LineReader {
  readonly #limit: number;
  /** The beginning of a line; its first `#length` bytes. Grows by doubling, so that many small pieces stay cheap. */
  #begun: Buffer = Buffer.alloc(0);
  #length = 0;
  /** What has not been searched for a newline. */
  #unread: Buffer = Buffer.alloc(0);
  #broken = false;

  /** `limit` is the longest line, in bytes without its newline. */
  constructor(limit = 1024 * 1024) {
    this.#limit = limit;
  }

  /** Afterwards, call `next` until it gives null. */
  feed(bytes: Buffer): void {
    this.#unread = this.#unread.length === 0 ? bytes : Buffer.concat([this.#unread, bytes]);
  }

  /** The next line without its newline, or null where it is not complete. A line beyond the limit ends the reader. */
  next(): Buffer | null {
    const at = this.#unread.indexOf(newline);
    const piece = at === -1 ? this.#unread : this.#unread.subarray(0, at);
    if (this.#broken || this.#length + piece.length > this.#limit) {
      this.#broken = true;
      throw new SessionError("PROTOCOL", `The other end sent a line of more than ${this.#limit} bytes.`);
    }
    this.#unread = this.#unread.subarray(piece.length + (at === -1 ? 0 : 1));
    if (at !== -1 && this.#length === 0) return piece;
    this.#keep(piece);
    return at === -1 ? null : this.#take();
  }

  /** Takes all bytes after the last line that was read. */
  rest(): Buffer {
    const bytes = Buffer.concat([this.#take(), this.#unread]);
    this.#unread = Buffer.alloc(0);
    return bytes;
  }

  #keep(piece: Buffer): void {
    const needed = this.#length + piece.length;
    if (needed > this.#begun.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.#begun.length));
      this.#begun.copy(larger, 0, 0, this.#length);
      this.#begun = larger;
    }
    piece.copy(this.#begun, this.#length);
    this.#length = needed;
  }

  #take(): Buffer {
    const taken = this.#begun.subarray(0, this.#length);
    this.#begun = Buffer.alloc(0);
    this.#length = 0;
    return taken;
  }
}
