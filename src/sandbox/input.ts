import { Writable } from "node:stream";
import { encodeInputEnd, encodeInputHeader, inputCredit, mostInput } from "../wire/frames.ts";
import type { Line } from "./line.ts";

/** More cost more than a copy. */
const fewChunks = 16;

type Done = (error?: Error | null) => void;

/**
 * Standard input of a process. A write is done when its bytes are on their way, within the warden's credit.
 *
 * It fails as that of a child process does: once nobody inside reads it, the next write fails with EPIPE. But unlike
 * there, a stream that nobody listens to does not bring the program down: how the process ended says it all. Closing it
 * by `destroy()` is an end like `end()`.
 */
export class Input extends Writable {
  readonly #line: Line;
  readonly #hasEnd: boolean;
  #credit = inputCredit;
  #isUnread = false;
  #isEnded = false;
  /** What of the current write has not been sent. */
  #rest: Buffer[] = [];
  #done: Done | undefined;

  /** A terminal has no half-close: there, `hasEnd` is false and the end of the stream sends nothing. */
  constructor(line: Line, hasEnd: boolean) {
    super({ highWaterMark: mostInput });
    this.#line = line;
    this.#hasEnd = hasEnd;
    this.on("error", () => {});
  }

  /** The warden takes so many bytes more. */
  grant(bytes: number): void {
    this.#credit += bytes;
    this.advance();
  }

  /** Nobody inside reads this any more. */
  refuse(): void {
    this.#isUnread = true;
    this.advance();
  }

  /** The process has ended, or the connection: with an error, if it was lost. */
  close(error?: Error): void {
    this.#isEnded = true;
    this.destroy(error);
  }

  /** Sends as much as credit and connection allow. */
  advance(): void {
    while (this.#rest.length > 0 && this.#credit > 0 && !this.#isUnread && !this.#line.isClogged) {
      const [parts, length] = this.#take(Math.min(mostInput, this.#credit));
      this.#line.send(encodeInputHeader(length), ...parts);
      this.#credit -= length;
    }
    if (this.#isUnread) this.#settle(brokenPipe());
    else if (this.#rest.length === 0 && !this.#line.isClogged) this.#settle();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: Done): void {
    this.#begin([chunk], done);
  }

  /** What was written in one go takes one frame, and one system call, where it has room. */
  override _writev(writes: { readonly chunk: Buffer }[], done: Done): void {
    const chunks = writes.map(({ chunk }) => chunk);
    this.#begin(chunks.length > fewChunks ? [Buffer.concat(chunks)] : chunks, done);
  }

  override _final(done: Done): void {
    this.#end();
    done();
  }

  override _destroy(error: Error | null, done: Done): void {
    this.#end();
    this.#settle(error ?? brokenPipe());
    done(error);
  }

  #begin(chunks: readonly Buffer[], done: Done): void {
    this.#rest = chunks.filter(({ length }) => length > 0);
    this.#done = done;
    this.advance();
  }

  /** As much as there is, and no more than that, with its length. */
  #take(most: number): readonly [parts: readonly Buffer[], length: number] {
    const parts: Buffer[] = [];
    let length = 0;
    for (let next = this.#rest[0]; next !== undefined && length < most; next = this.#rest[0]) {
      const part = next.subarray(0, most - length);
      if (part.length < next.length) this.#rest[0] = next.subarray(part.length);
      else this.#rest.shift();
      parts.push(part);
      length += part.length;
    }
    return [parts, length];
  }

  #settle(error?: Error): void {
    const done = this.#done;
    this.#done = undefined;
    this.#rest = [];
    done?.(error);
  }

  #end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    if (this.#hasEnd) this.#line.send(encodeInputEnd());
  }
}

function brokenPipe(): Error {
  return Object.assign(new Error("write EPIPE"), { code: "EPIPE", syscall: "write" });
}
