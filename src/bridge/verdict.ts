import { isUtf8 } from "node:buffer";
import { type Message, readMessage } from "./message.ts";
import type { HostedProtocol } from "./policy.ts";
import { type Rules, readValue } from "./rules.ts";
import { Scanner, type Span, tooMuch } from "./scanner.ts";
import { type Edit, findEdits, type Pattern, splice } from "./shape.ts";

export type Verdict =
  /** It goes on as it is. `message` says what it is. */
  | { readonly kind: "pass"; readonly message: Message }
  /** It goes on with these bytes instead; `masked` names what is not offered any more. */
  | { readonly kind: "changed"; readonly message: Message; readonly line: Buffer; readonly masked: readonly string[] }
  /** Nothing was said. */
  | { readonly kind: "blank" }
  /** It goes nowhere. The id is null where nobody waits for an answer. */
  | { readonly kind: "denied"; readonly method: string; readonly id: string | null }
  | { readonly kind: "refused"; readonly reason: string; readonly answer: string | null };

const blank: Verdict = { kind: "blank" };
const newline = 0x0a;
const brace = 0x7b;
/** How many names somebody is told of one message. */
const mostMasked = 16;

/** Says of each line of one direction what becomes of it. */
export class Judge {
  readonly #protocol: HostedProtocol;
  readonly #rules: Rules;
  readonly #scanner = new Scanner();
  #block: Buffer = Buffer.alloc(0);
  #isUtf8 = false;
  #end = 0;
  /** What is to be changed in the line. Most lines have nothing, and share the list. */
  #edits: Edit[] = [];

  constructor(protocol: HostedProtocol, rules: Rules) {
    this.#protocol = protocol;
    this.#rules = rules;
  }

  /** Whole lines; what is judged afterwards lies in them. */
  open(block: Buffer): void {
    this.#block = block;
    this.#scanner.open(block);
    this.#isUtf8 = isUtf8(block);
  }

  /** The line that begins there. What cannot be judged is not let through. */
  judge(start: number): Verdict {
    try {
      return this.#judge(start);
    } catch {
      this.#seekEnd(start);
      return this.#unreadable(start, "it cannot be judged");
    }
  }

  /** Where the line has its newline that was judged last. */
  get end(): number {
    return this.#end;
  }

  #judge(start: number): Verdict {
    if (!this.#isUtf8) {
      this.#seekEnd(start);
      if (!isUtf8(this.#block.subarray(start, this.#end))) return this.#unreadable(start, "it is not UTF-8");
    }
    const members = this.#scanner.scan(start);
    if (members === null) {
      this.#seekEnd(start);
      if (this.#isBlank(start)) return blank;
      return this.#unreadable(start, this.#scanner.problem);
    }
    // A newline is nowhere in an object, so that the line ends where it was found to end.
    this.#end = this.#scanner.end;
    const message = readMessage(this.#scanner, members, this.#protocol);
    if (message.kind === "refused") return message;
    const { initialize, params: usual, result, error, denies } = this.#rules;
    if (this.#edits.length > 0) this.#edits = [];
    if (message.kind === "response") {
      if (!this.#find(message.result, result) || !this.#find(message.error, error)) return overfull(null);
    } else {
      const { method, params } = message;
      const id = message.kind === "request" ? message.id : null;
      const spelled = () => readValue(params === null ? "null" : this.#scanner.text(params.start, params.end));
      if (denies(method, id !== null, spelled)) return { kind: "denied", method, id };
      const pattern = initialize !== null && /initialize$/i.test(method) ? initialize : usual;
      if (!this.#find(params, pattern)) return overfull(id);
    }
    return this.#edits.length === 0 ? { kind: "pass", message } : this.#change(start, message);
  }

  #seekEnd(start: number): void {
    this.#end = start;
    while (this.#block[this.#end] !== newline) this.#end += 1;
  }

  #isBlank(start: number): boolean {
    let at = start;
    while (this.#block[at] === 0x20 || this.#block[at] === 0x09) at += 1;
    if (this.#block[at] === 0x0d) at += 1;
    return at === this.#end;
  }

  /** Whoever began an object meant it as a message, and may wait for an answer; but whose, nobody can say. */
  #unreadable(start: number, reason: string): Verdict {
    return { kind: "refused", reason, answer: this.#block[start] === brace ? "null" : null };
  }

  #find(span: Span | null, pattern: Pattern | null): boolean {
    return span === null || pattern === null || findEdits(this.#scanner, span, pattern, this.#edits);
  }

  #change(start: number, message: Message): Verdict {
    const edits = this.#edits.sort((one, other) => one.start - other.start);
    const line = splice(this.#block, start, this.#end + 1, edits);
    const masked = new Set<string>();
    // A path is replaced by a path, which is a string; nothing else is.
    for (const { json, path } of edits) if (masked.size < mostMasked && !json.startsWith('"')) masked.add(path);
    return { kind: "changed", message, line, masked: [...masked] };
  }
}

function overfull(answer: string | null): Verdict {
  return { kind: "refused", reason: tooMuch, answer };
}
