import { closeSync, constants, fstatSync, openSync, readSync, writeSync } from "node:fs";

/**
 * A file to which lines are added, each with one write, so that readers never see a line in two parts and a crash tears
 * at most the last one. Nothing here throws: a session must not fail for want of a diary.
 */
export class Appender {
  readonly #path: string;
  #descriptor: number | null = null;
  #size = 0;
  /** Whether the file ends in the middle of a line. */
  #torn = false;
  #failure: string | null = null;

  constructor(path: string) {
    this.#path = path;
  }

  /** In bytes, as far as this writer knows. */
  get size(): number {
    return this.#size;
  }

  /** What the system said when a line could last not be written; null where it said nothing. */
  get failure(): string | null {
    return this.#failure;
  }

  /** False where the line could not be written whole. */
  append(line: string): boolean {
    this.#failure = null;
    try {
      const descriptor = this.#descriptor ?? this.#open();
      // After a torn line, a newline of its own keeps the damage to that line.
      const bytes = Buffer.from(this.#torn ? `\n${line}` : line, "utf8");
      const written = writeSync(descriptor, bytes);
      this.#size += written;
      // On a full disk the kernel writes what still fits.
      this.#torn = written > 0 ? bytes[written - 1] !== newline : this.#torn;
      // Removed under our hands: what was written went nowhere. The next line looks for the file anew.
      if (fstatSync(descriptor).nlink > 0) return written === bytes.length;
    } catch (error) {
      // Whatever it is, the next line tries again.
      this.#failure = (error as NodeJS.ErrnoException).code ?? null;
    }
    this.close();
    return false;
  }

  close(): void {
    if (this.#descriptor === null) return;
    try {
      closeSync(this.#descriptor);
    } catch {
      // It is gone either way.
    }
    this.#descriptor = null;
    this.#size = 0;
  }

  #open(): number {
    const { O_RDWR, O_CREAT, O_APPEND, O_NOFOLLOW } = constants;
    const descriptor = openSync(this.#path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW, 0o600);
    this.#descriptor = descriptor;
    this.#size = fstatSync(descriptor).size;
    this.#torn = this.#size > 0 && lastByte(descriptor, this.#size) !== newline;
    return descriptor;
  }
}

const newline = 0x0a;

function lastByte(descriptor: number, size: number): number | undefined {
  const byte = Buffer.alloc(1);
  readSync(descriptor, byte, 0, 1, size - 1);
  return byte[0];
}
