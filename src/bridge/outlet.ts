import type { Writable } from "node:stream";

const fewPieces = 4;

/**
 * The one way into a stream: what is written goes in order, and whoever writes learns when to wait. A stream that breaks
 * swallows what comes, so that nobody waits for it.
 */
export class Outlet {
  readonly #stream: Writable;
  readonly #broken: () => void;
  readonly #waiting = new Set<() => void>();
  /** How many writes, and how many bytes of answers, have not been taken. */
  #writes = 0;
  #answers = 0;
  #isClosed = false;

  constructor(stream: Writable, broken: () => void) {
    this.#stream = stream;
    this.#broken = broken;
    stream.on("drain", this.#wake).on("error", this.#onBroken).on("close", this.#onBroken);
    if (stream.destroyed) this.#onBroken();
  }

  /** A promise where the stream has enough for now. Few pieces go as they are; many small ones cost more than a copy. */
  write(pieces: readonly Buffer[]): Promise<void> | undefined {
    if (this.#isClosed || pieces.length === 0) return undefined;
    if (pieces.length > fewPieces) this.#put(Buffer.concat(pieces));
    else if (pieces.length === 1) this.#put(pieces[0] as Buffer);
    else {
      this.#stream.cork();
      for (const piece of pieces) this.#put(piece);
      this.#stream.uncork();
    }
    return this.#stream.writableNeedDrain ? this.#wait(() => !this.#stream.writableNeedDrain) : undefined;
  }

  /**
   * Answers wait for nobody until there are too many: the one who is answered may be busy writing, and would never read
   * if it were not read from.
   */
  answer(lines: readonly string[], most: number): Promise<void> | undefined {
    if (this.#isClosed || lines.length === 0) return undefined;
    const bytes = Buffer.from(lines.join(""));
    this.#answers += bytes.length;
    this.#put(bytes, () => {
      this.#answers -= bytes.length;
    });
    return this.#answers <= most ? undefined : this.#wait(() => this.#answers <= most);
  }

  end(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#stream.end();
    this.#wake();
  }

  /** Resolves when all that was written has been taken. */
  flush(): Promise<void> {
    return this.#wait(() => this.#writes === 0);
  }

  /** Leaves the stream to whoever owns it; but a break that comes late must not become everybody's. */
  release(): void {
    this.#isClosed = true;
    this.#stream.off("drain", this.#wake).off("close", this.#onBroken);
    this.#wake();
  }

  #put(bytes: Buffer, taken?: () => void): void {
    this.#writes += 1;
    this.#stream.write(bytes, () => {
      this.#writes -= 1;
      taken?.();
      if (this.#waiting.size > 0) this.#wake();
    });
  }

  async #wait(isReady: () => boolean): Promise<void> {
    while (!this.#isClosed && !isReady()) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  readonly #wake = (): void => {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  };

  readonly #onBroken = (): void => {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#broken();
    this.#wake();
  };
}
