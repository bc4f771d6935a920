import { renameSync } from "node:fs";
import { join } from "node:path";
import { Appender } from "./append.ts";
import type { Happening, JournalEvent } from "./event.ts";
import { encodeOutput, type Stream } from "./output.ts";
import { readEvents } from "./read.ts";

/** Writes down what happens in a session. Nothing here throws; what could not be written is counted. */
export interface Journal extends Disposable {
  event(happening: Happening): void;
  /** Called for every piece of output, and cheap enough for it. */
  output(process: number, stream: Stream, bytes: Uint8Array): void;
  /** How many bytes could not be written so far. */
  readonly lost: number;
  /** What comes afterwards is lost. */
  close(): void;
}

export interface JournalOptions {
  /** How large the file of output may grow, in bytes. The one before it is kept, and no other. Default: 8 MiB. */
  readonly outputLimit?: number;
}

/** Larger pieces are cut, so that no line of the file is long. */
const largestPiece = 64 * 1024;

export function openJournal(directory: string, now: () => Date, options: JournalOptions = {}): Journal {
  return new FileJournal(directory, now, options.outputLimit ?? 8 * 1024 * 1024);
}

class FileJournal implements Journal {
  readonly #directory: string;
  readonly #now: () => Date;
  readonly #limit: number;
  readonly #events: Appender;
  readonly #output: Appender;
  #seq: number;
  #lost = 0;
  /** Lost, and not yet written down as such. */
  #untold = 0;
  #closed = false;

  constructor(directory: string, now: () => Date, limit: number) {
    this.#directory = directory;
    this.#now = now;
    this.#limit = limit;
    this.#events = new Appender(join(directory, "journal.jsonl"));
    this.#output = new Appender(join(directory, "output.jsonl"));
    this.#seq = lastSeq(directory);
  }

  get lost(): number {
    return this.#lost;
  }

  event(happening: Happening): void {
    this.#tellLoss();
    this.#append(happening);
  }

  output(process: number, stream: Stream, bytes: Uint8Array): void {
    for (let from = 0; from < bytes.length; ) {
      const end = pieceEnd(bytes, from);
      const at = this.#now().toISOString();
      this.#write(this.#output, encodeOutput({ at, process, stream, bytes: bytes.subarray(from, end) }));
      from = end;
    }
  }

  [Symbol.dispose](): void {
    this.close();
  }

  close(): void {
    if (!this.#closed) this.#tellLoss();
    this.#closed = true;
    this.#events.close();
    this.#output.close();
  }

  #append(happening: Happening): boolean {
    const event: JournalEvent = { seq: this.#seq + 1, at: this.#now().toISOString(), ...happening };
    const done = this.#write(this.#events, `${JSON.stringify(event)}\n`);
    if (done) this.#seq += 1;
    return done;
  }

  #write(file: Appender, line: string): boolean {
    const size = Buffer.byteLength(line);
    if (!this.#closed && this.#makeRoom(file, size) && file.append(line)) {
      if (file === this.#output) this.#tellLoss();
      return true;
    }
    this.#lost += size;
    this.#untold += size;
    return false;
  }

  /** Says in the journal what is missing, as soon as it can be written again. */
  #tellLoss(): void {
    const bytes = this.#untold;
    if (bytes === 0) return;
    // If this fails, its own size does not count: nobody misses it.
    const [lost, untold] = [this.#lost, this.#untold];
    this.#untold = 0;
    if (this.#append({ kind: "journal-lost", bytes })) return;
    this.#lost = lost;
    this.#untold = untold;
  }

  /** The full file of output becomes the one before it. Readers that hold it open read on; see followOutput. */
  #makeRoom(file: Appender, size: number): boolean {
    if (file !== this.#output || file.size === 0 || file.size + size <= this.#limit) return true;
    file.close();
    try {
      renameSync(join(this.#directory, "output.jsonl"), join(this.#directory, "output.1.jsonl"));
      return true;
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === "ENOENT";
    }
  }
}

/** Where a piece ends: between two characters, if it is text. */
function pieceEnd(bytes: Uint8Array, from: number): number {
  const end = from + largestPiece;
  if (end >= bytes.length) return bytes.length;
  for (let back = 0; back < 4; back += 1) {
    if (((bytes[end - back] as number) & 0xc0) !== 0x80) return end - back;
  }
  return end;
}

function lastSeq(directory: string): number {
  try {
    return readEvents(directory).events.at(-1)?.seq ?? 0;
  } catch {
    return 0;
  }
}
