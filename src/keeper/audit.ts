import { mkdirSync } from "node:fs";
import { FilesystemError } from "../errors.ts";
import type { AuditAhead, AuditEntry } from "../gateway/audit.ts";
import { Appender } from "../journal/append.ts";
import { thisHost } from "../machine/host.ts";
import { markOf } from "../machine/process-mark.ts";
import type { SessionId } from "../registry/record.ts";
import { auditDirectory, auditFile, sweepAudits } from "./audit-files.ts";
import type { AuditHeader } from "./audit-line.ts";

/** Writes down what a run asks for at the doors. Nothing here throws. */
export interface Audit extends Disposable {
  /**
   * Before something is let out, and while it goes on. False where that cannot be written; the end of what was opened can
   * be, since room is kept for it.
   */
  ahead(line: AuditAhead): boolean;
  write(entry: AuditEntry): void;
  /** After a failure: whether entries can be written again. Never, where the file is full. */
  recover(): boolean;
}

export interface AuditOptions {
  readonly about: Pick<AuditHeader, "agent" | "cwd" | "mode">;
  /**
   * Called for each entry that could not be written. By then it has happened; what comes after it need not. Whoever
   * must not let anything through unseen refuses from here on, at least until an entry can be written again.
   */
  readonly onFailure: (failure: FilesystemError) => void;
  /** How large the file may grow, in bytes. Default: 64 MiB. */
  readonly limit?: number;
  /**
   * How much of it may be questions for names, in bytes; what comes then is only counted. They cost nothing to ask and
   * lead nowhere, and must not take the place of what does. Default: 4 MiB.
   */
  readonly nameLimit?: number;
  /** How many files stay, this one included. Default: 100. */
  readonly keep?: number;
  readonly now?: () => Date;
}

/**
 * The audit of one run. Its file comes into being with the first entry: a run that asks for nothing leaves nothing.
 * Each line is written at once and in one piece: what was written before this process is killed stays, and it costs
 * some microseconds. Only the ends of what was opened wait, for the next line or the end of the turn: if they are lost
 * with the process, the file still says that there was a beginning. Where a keeper comes back to a box, it goes on in the
 * same file.
 */
export function openAudit(state: string, id: SessionId, options: AuditOptions): Audit {
  return new FileAudit(state, id, options);
}

/** Of the end of something: its outcome, beyond what its beginning has said. What came from outside may be longer. */
const longestOutcome = 512;

function textOf(line: object): string {
  return `${JSON.stringify(line)}\n`;
}

class FileAudit implements Audit {
  readonly #state: string;
  readonly #path: string;
  readonly #file: Appender;
  readonly #about: Pick<AuditHeader, "podbot" | "id"> & AuditOptions["about"];
  readonly #onFailure: AuditOptions["onFailure"];
  readonly #limit: number;
  readonly #nameLimit: number;
  readonly #keep: number;
  readonly #now: () => Date;
  /** Whether the header stands, and entries can follow. */
  #isBegun = false;
  #isSwept = false;
  #isFull = false;
  #isClosed = false;
  /** Entries that could not be written, and of which the file does not tell yet. */
  #untold = 0;
  /** Ends that are to be written with the next line. */
  #waiting: string[] = [];
  /** What is open, with the bytes that are kept for its end, and how many these are together. */
  readonly #open = new Map<number, number>();
  #reserved = 0;
  /** Bytes of questions for names, and how many questions were only counted. */
  #nameBytes = 0;
  #unlisted = 0;

  constructor(state: string, id: SessionId, options: AuditOptions) {
    this.#state = state;
    this.#path = auditFile(state, id);
    this.#file = new Appender(this.#path);
    this.#about = { podbot: 1, id, ...options.about };
    this.#onFailure = options.onFailure;
    this.#limit = options.limit ?? 64 * 1024 * 1024;
    this.#nameLimit = options.nameLimit ?? 4 * 1024 * 1024;
    this.#keep = options.keep ?? 100;
    this.#now = options.now ?? (() => new Date());
  }

  ahead(line: AuditAhead): boolean {
    if ("dropped" in line) return this.#conclude(line.dropped, line);
    if ("passing" in line) return this.#isFull || this.#tell(line);
    const size = Buffer.byteLength(JSON.stringify(line)) + longestOutcome;
    const isWritten = this.recover() && this.#put(line, false, size);
    if (isWritten) {
      this.#open.set(line.opening, size);
      this.#reserved += size;
    } else this.#fail(0);
    return isWritten;
  }

  write(entry: AuditEntry): void {
    if (entry.opening !== undefined && this.#open.has(entry.opening)) return void this.#conclude(entry.opening, entry);
    const isName = entry.kind === "dns";
    if (isName && (this.#isFull || this.#unlisted > 0) && !this.#isClosed) {
      this.#unlisted += 1;
      return;
    }
    if (!(this.recover() && this.#put(entry, isName))) this.#fail();
  }

  recover(): boolean {
    return !this.#isClosed && !this.#isFull && this.#begin() && this.#tellLoss();
  }

  [Symbol.dispose](): void {
    if (this.#isClosed) return;
    this.#flush();
    this.#isClosed = true;
    // Where nothing was ever asked for, there is nothing to end.
    if (this.#isSwept && this.#begin()) {
      this.#tellLoss();
      if (this.#unlisted > 0) this.#append(textOf({ unlisted: this.#unlisted, at: this.#now().toISOString() }));
      this.#append(textOf({ endedAt: this.#now().toISOString() }));
    }
    this.#file.close();
  }

  /** Room was kept for it, so that it can be written even where the file is full. */
  #conclude(opening: number, line: object): true {
    this.#reserved -= this.#open.get(opening) ?? 0;
    this.#open.delete(opening);
    if (this.#waiting.push(textOf(line)) === 1) setImmediate(() => this.#flush());
    return true;
  }

  #flush(): void {
    if (this.#waiting.length === 0) return;
    if (!this.#isClosed && this.#begin() && this.#tellLoss() && this.#append()) return;
    // What could not be appended is counted by then.
    this.#fail(this.#waiting.splice(0).length);
  }

  /** The size of the file with all that it must have room for. */
  #promised(): number {
    return this.#file.size + this.#reserved + this.#waiting.reduce((size, text) => size + text.length, 0);
  }

  /** How far something has come is no loss where there is no room for it. */
  #tell(line: object): boolean {
    const text = textOf(line);
    if (this.#promised() + Buffer.byteLength(text) > this.#limit) return true;
    if (this.recover() && this.#append(text)) return true;
    this.#fail(0);
    return false;
  }

  #begin(): boolean {
    if (this.#isBegun) return true;
    try {
      mkdirSync(auditDirectory(this.#state), { recursive: true, mode: 0o700 });
      if (!this.#isSwept) sweepAudits(this.#state, this.#keep);
    } catch {
      // The line itself cannot be written then, or there is one file too many: it says so, or it does not matter.
    }
    this.#isSwept = true;
    const { podbot, id, agent, cwd, mode } = this.#about;
    const startedAt = this.#now().toISOString();
    const header: AuditHeader = { podbot, id, startedAt, agent, cwd, mode, keeper: markOf(thisHost().pid) };
    this.#isBegun = this.#file.append(textOf(header));
    return this.#isBegun;
  }

  #tellLoss(): boolean {
    if (this.#untold === 0) return true;
    if (!this.#file.append(textOf({ lost: this.#untold, at: this.#now().toISOString() }))) return false;
    this.#untold = 0;
    return true;
  }

  /** False where the file is full, too: whatever passed from then on would pass unseen. */
  #put(line: object, isName: boolean, more = 0): boolean {
    const text = textOf(line);
    const size = Buffer.byteLength(text);
    if (isName && this.#nameBytes + size > this.#nameLimit) return this.#leaveOut();
    if (this.#promised() + size + more > this.#limit) {
      this.#isFull = this.#append(textOf({ full: true, at: this.#now().toISOString() }));
      return isName && this.#isFull && this.#leaveOut();
    }
    if (isName) this.#nameBytes += size;
    return this.#append(text);
  }

  /** Said at once, lest nobody say it where this process is killed; how many they were, at the end. */
  #leaveOut(): boolean {
    this.#unlisted = 1;
    return this.#append(textOf({ unlisted: 1, at: this.#now().toISOString() }));
  }

  /** With what waits, in one piece. */
  #append(text = ""): boolean {
    const waiting = this.#waiting.splice(0);
    if (this.#file.append(waiting.join("") + text)) return true;
    this.#untold += waiting.length;
    return false;
  }

  /** The next entry begins anew: the file may have been removed, or may have lost its beginning. */
  #fail(lost = 1): void {
    this.#untold += lost;
    if (!this.#isFull) this.#isBegun = false;
    const cause = this.#file.failure ?? "it was removed, or the disk is full";
    const why = this.#isFull ? "it is as large as it may become" : this.#isClosed ? "it is closed" : cause;
    this.#onFailure(
      new FilesystemError("FILESYSTEM", `What was asked for cannot be written to ${this.#path}: ${why}.`, {
        hint: this.#isFull
          ? "Start the sandbox anew: each run has an audit of its own."
          : "Free some space, or set XDG_STATE_HOME to a directory that can be written.",
        details: { path: this.#path, errno: this.#file.failure },
      }),
    );
  }
}
