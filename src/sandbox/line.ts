import type { Duplex } from "node:stream";

/** How much may wait to be sent before those who send a lot have to wait. */
const mostWaiting = 131_072;

/** The sending half of a connection. What is said after its end is lost, as it should be. */
export class Line {
  readonly #stream: Duplex;

  constructor(stream: Duplex) {
    this.#stream = stream;
  }

  /** Many parts go in one write. */
  send(...parts: readonly Buffer[]): void {
    const stream = this.#stream;
    if (stream.destroyed || stream.writableEnded) return;
    stream.cork();
    for (const part of parts) stream.write(part);
    stream.uncork();
  }

  /** Whether the other end has fallen behind. A `drain` of the stream follows when it has caught up. */
  get isClogged(): boolean {
    return this.#stream.writableNeedDrain && this.#stream.writableLength >= mostWaiting;
  }
}
