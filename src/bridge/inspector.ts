import { acp } from "./acp.ts";
import { encodeDenial, encodeRefusal } from "./answer.ts";
import { codex } from "./codex.ts";
import type { BridgeEvent, Direction, FrameId } from "./event.ts";
import { Framer } from "./framer.ts";
import type { Message } from "./message.ts";
import type { BridgePolicy, HostedProtocol } from "./policy.ts";
import { members } from "./question.ts";
import { makeRules, type Protocol } from "./rules.ts";
import { Judge, type Verdict } from "./verdict.ts";

export const protocols: Readonly<Record<HostedProtocol, Protocol>> = { acp, codex_app_server: codex };

/** A request that somebody may decide before it reaches the client. */
export interface Asked {
  readonly method: string;
  readonly id: string;
  /** As it would reach the client. */
  readonly line: Buffer;
}

/** What became of a chunk. */
export interface Inspected {
  /** What goes on, in order. Lines that follow each other and were not changed are one piece, a view of the chunk. */
  readonly pieces: readonly Buffer[];
  /** What whoever sent it is told. */
  readonly answers: readonly string[];
  readonly asked: readonly Asked[];
  /** The sessions in which the client waits no longer. */
  readonly cancelled: readonly string[];
}

/** Takes the bytes of one direction as they come, and says what goes on. */
export class Inspector {
  readonly #direction: Direction;
  readonly #name: HostedProtocol;
  readonly #protocol: Protocol;
  readonly #decides: boolean;
  readonly #report: (event: BridgeEvent) => void;
  readonly #framer: Framer;
  readonly #judge: Judge;
  #pieces: Buffer[] = [];
  #answers: string[] = [];
  #asked: Asked[] = [];
  #cancelled: string[] = [];

  constructor(direction: Direction, policy: BridgePolicy, report: (event: BridgeEvent) => void) {
    this.#direction = direction;
    this.#name = policy.protocol;
    this.#protocol = protocols[policy.protocol];
    this.#decides = policy.decide !== undefined;
    this.#report = report;
    this.#judge = new Judge(policy.protocol, makeRules(this.#protocol, policy, direction));
    this.#framer = new Framer(policy.maxFrameBytes, (bytes, first) => {
      this.#refuse("it is too long", bytes, first === 0x7b ? "null" : null);
    });
  }

  push(chunk: Buffer): Inspected {
    this.#pieces = [];
    this.#answers = [];
    this.#asked = [];
    this.#cancelled = [];
    for (const block of this.#framer.push(chunk)) this.#inspect(block);
    return { pieces: this.#pieces, answers: this.#answers, asked: this.#asked, cancelled: this.#cancelled };
  }

  /** A line that was begun and never ended is no message. */
  end(): void {
    const bytes = this.#framer.rest();
    if (bytes > 0) this.#refuse("it does not end", bytes, null);
  }

  #inspect(block: Buffer): void {
    this.#judge.open(block);
    /** Where the lines begin that nothing was done to. */
    let kept = 0;
    for (let start = 0; start < block.length; ) {
      const verdict = this.#judge.judge(start);
      const next = this.#judge.end + 1;
      const line = this.#carryOut(verdict, block, start, next);
      if (line !== undefined) {
        if (start > kept) this.#pieces.push(block.subarray(kept, start));
        if (line !== null) this.#pieces.push(line);
        kept = next;
      }
      start = next;
    }
    if (kept < block.length) this.#pieces.push(block.subarray(kept));
  }

  /** The line that goes on instead, null where none does, undefined where it is the same. */
  #carryOut(verdict: Verdict, block: Buffer, start: number, next: number): Buffer | null | undefined {
    switch (verdict.kind) {
      case "pass":
        return this.#decides && this.#withholds(verdict.message, block.subarray(start, next)) ? null : undefined;
      case "changed":
        if (verdict.masked.length > 0) {
          this.#report({ kind: "capabilities-masked", direction: this.#direction, names: verdict.masked });
        }
        return this.#decides && this.#withholds(verdict.message, verdict.line) ? null : verdict.line;
      case "blank":
        return null;
      case "denied":
        this.#deny(verdict.method, verdict.id);
        return null;
      case "refused":
        this.#refuse(verdict.reason, next - 1 - start, verdict.answer);
        return null;
    }
  }

  #deny(method: string, id: string | null): void {
    if (id === null) {
      this.#report({ kind: "notification-dropped", method });
    } else {
      this.#report({ kind: "request-denied", method, id: JSON.parse(id) as FrameId });
      this.#answers.push(encodeDenial(this.#name, id, method));
    }
  }

  /** Only the agent is told: what goes to the client is the agent's alone. */
  #refuse(reason: string, bytes: number, answer: string | null): void {
    this.#report({ kind: "frame-refused", direction: this.#direction, reason, bytes });
    if (answer !== null && this.#direction === "to-client")
      this.#answers.push(encodeRefusal(this.#name, answer, reason));
  }

  /** Whether somebody is asked before the client is. Takes note, too, of what ends such a question. */
  #withholds(message: Message, line: Buffer): boolean {
    const { questions, cancel } = this.#protocol;
    if (this.#direction === "to-client") {
      if (message.kind !== "request" || !Object.hasOwn(questions, message.method)) return false;
      this.#asked.push({ method: message.method, id: message.id, line });
      return true;
    }
    if ("method" in message && message.method === cancel.method) {
      const session = members(members(JSON.parse(line.toString()))["params"])[cancel.session];
      if (typeof session === "string") this.#cancelled.push(session);
    }
    return false;
  }
}
