import { type BigIntStats, closeSync, constants, fstatSync, openSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { FilesystemError } from "../errors.ts";
import { LineReader } from "../wire/ndjson.ts";

/** One file of lines, held open: it can be read to its end even after it was renamed or replaced. */
export class Segment implements Disposable {
  readonly #descriptor: number;
  readonly #lines = new LineReader(Number.MAX_SAFE_INTEGER);
  #offset = 0;

  constructor(descriptor: number) {
    this.#descriptor = descriptor;
  }

  get identity(): string {
    return identify(fstatSync(this.#descriptor, { bigint: true }));
  }

  /** The complete lines that have been added since it was last asked. */
  *read(): Generator<string> {
    const bytes = Buffer.allocUnsafe(64 * 1024);
    for (;;) {
      const count = readSync(this.#descriptor, bytes, 0, bytes.length, this.#offset);
      if (count === 0) return;
      this.#offset += count;
      this.#lines.feed(Buffer.from(bytes.subarray(0, count)));
      for (let line = this.#lines.next(); line !== null; line = this.#lines.next()) yield line.toString("utf8");
    }
  }

  /** Whether it ends in the middle of a line. To be asked when nothing more is read. */
  isTorn(): boolean {
    return this.#lines.rest().length > 0;
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor);
  }
}

/** Null where there is no such file. */
export function openSegment(path: string): Segment | null {
  try {
    return new Segment(openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK));
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return null;
    throw new FilesystemError("FILESYSTEM", `${path} cannot be read: ${code}.`, {
      details: { path, errno: code },
      cause,
    });
  }
}

/**
 * The file of output that follows the one with this identity, or the oldest there is. Null while there is none. The
 * writer may put a new file in place at any moment: what was looked at before must still hold afterwards.
 */
export function openNextOutput(directory: string, after: string | null): Segment | null {
  const [current, former] = [join(directory, "output.jsonl"), join(directory, "output.1.jsonl")];
  for (;;) {
    const before = identityAt(former);
    if (after !== null && identityAt(current) === after) return null;
    const wanted = before === null || before === after ? current : former;
    const segment = openSegment(wanted);
    if (identityAt(former) === before && (wanted === current || segment?.identity === before)) return segment;
    segment?.[Symbol.dispose]();
  }
}

/** What cannot be looked at cannot be opened either, and that says why. */
function identityAt(path: string): string | null {
  try {
    return identify(statSync(path, { bigint: true }));
  } catch {
    return null;
  }
}

/** Nobody else can have it as long as the file is held open. */
function identify({ dev, ino }: BigIntStats): string {
  return `${dev}:${ino}`;
}
