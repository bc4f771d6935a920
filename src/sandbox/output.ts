import { Readable } from "node:stream";
import { SessionError } from "../errors.ts";
import { encodeCredit, encodeUnread, type OutputStream, outputCredit } from "../wire/frames.ts";
import type { Line } from "./line.ts";

/** Each grant wakes the other end: from here on it is worth that. It must stay well below the credit. */
const worthGranting = 524_288;
const heldInAdvance = 65_536;

/**
 * A piece shorter than this is copied. It is a view of a chunk of up to 64 KiB: kept as it is, one byte would keep all
 * of that alive.
 */
const short = 4096;
const parcelSize = 16_384;

/**
 * Standard output or error of a process. What the consumer has not taken is held here, and only what was taken is
 * granted again: never more than the initial credit is held, whatever the consumer does. After `destroy()`, who still
 * writes there gets SIGPIPE, as on a pipe whose reader has left; `resume()` throws away and lets it go on.
 */
export class Output extends Readable {
  readonly #line: Line;
  readonly #number: OutputStream;
  readonly #watch: ((bytes: Buffer) => void) | undefined;
  readonly #waiting = new Backlog();
  #isWanted = false;
  #isComplete = false;
  #received = 0;
  #granted = 0;

  /** The watcher is shown everything, whether or not anybody reads it, and must not keep what it is shown. */
  constructor(line: Line, number: OutputStream, watch?: (bytes: Buffer) => void) {
    super({ highWaterMark: heldInAdvance });
    this.#line = line;
    this.#number = number;
    this.#watch = watch;
    // The loss of the sandbox is told by `exited`; it must not bring down a program that does not read this stream.
    this.on("error", () => {});
  }

  receive(bytes: Buffer): void {
    this.#received += bytes.length;
    if (this.#isComplete) throw new SessionError("PROTOCOL", "The warden sent output after its end.");
    if (this.#received > outputCredit + this.#granted) {
      throw new SessionError("PROTOCOL", "The warden sent more output than it was granted.");
    }
    this.#watch?.(bytes);
    if (!this.destroyed) {
      if (this.#isWanted) this.#isWanted = this.push(bytes.length < short ? Buffer.from(bytes) : bytes);
      else this.#waiting.add(bytes);
    }
    this.grant();
  }

  /** Nothing more will come. */
  complete(): void {
    if (this.#isComplete) throw new SessionError("PROTOCOL", "The warden ended an output twice.");
    this.#isComplete = true;
    if (this.#waiting.bytes === 0) this.push(null);
  }

  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** Grants what has been taken, if it is worth a frame and if the line takes one. */
  grant(): void {
    const held = this.destroyed ? 0 : this.readableLength + this.#waiting.bytes;
    const owed = this.#received - held - this.#granted;
    if (owed < worthGranting || this.#isComplete || this.#line.isClogged) return;
    this.#granted += owed;
    this.#line.send(encodeCredit(this.#number, owed));
  }

  override _read(): void {
    this.#isWanted = true;
    while (this.#isWanted) {
      const bytes = this.#waiting.take();
      if (bytes === undefined) break;
      this.#isWanted = this.push(bytes);
    }
    if (this.#isComplete && this.#waiting.bytes === 0) this.push(null);
    this.grant();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#waiting.clear();
    done(error);
    if (!this.#isComplete) this.#line.send(encodeUnread(this.#number));
    this.grant();
  }
}

/** What has come and is not yet wanted. Short pieces are packed together: a million of them would take a lot of room. */
class Backlog {
  #pieces: Buffer[] = [];
  #parcel = Buffer.alloc(0);
  #used = 0;
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  add(piece: Buffer): void {
    this.#bytes += piece.length;
    if (piece.length >= short) {
      this.#pieces.push(piece);
      this.#seal();
      return;
    }
    if (this.#used + piece.length > this.#parcel.length) {
      this.#parcel = Buffer.allocUnsafe(parcelSize);
      this.#used = 0;
    }
    if (this.#used > 0) this.#pieces.pop();
    this.#used += piece.copy(this.#parcel, this.#used);
    this.#pieces.push(this.#parcel.subarray(0, this.#used));
  }

  take(): Buffer | undefined {
    const piece = this.#pieces.shift();
    this.#bytes -= piece?.length ?? 0;
    if (this.#pieces.length === 0) this.#seal();
    return piece;
  }

  clear(): void {
    this.#pieces = [];
    this.#bytes = 0;
    this.#seal();
  }

  /** What has been packed is closed: the next short piece begins a new parcel. */
  #seal(): void {
    this.#parcel = Buffer.alloc(0);
    this.#used = 0;
  }
}
