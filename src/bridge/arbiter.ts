import type { Decide, Decision, Question } from "../decision.ts";
import { encodeReply } from "./answer.ts";
import type { BridgeEvent } from "./event.ts";
import type { Asked } from "./inspector.ts";
import type { HostedProtocol } from "./policy.ts";
import { type Asking, members, type Questions } from "./question.ts";

/** How many questions may wait for somebody at the same time, and how long they may be together. */
export const mostPending = 64;
const mostPendingBytes = 8 * 1024 * 1024;

export interface ArbiterContext {
  readonly protocol: HostedProtocol;
  readonly questions: Questions;
  readonly decide: Decide;
  readonly report: (event: BridgeEvent) => void;
  /** To the agent, in place of the client. */
  readonly reply: (line: string) => void;
  /** To the client, who decides then. */
  readonly forward: (line: Buffer) => void;
  /** Where whoever is reported to fails. */
  readonly fail: (error: unknown) => void;
}

interface Pending {
  readonly session: string | null;
  readonly bytes: number;
  readonly controller: AbortController;
}

/** Puts questions of the agent to whoever decides, each on its own time. */
export class Arbiter {
  readonly #context: ArbiterContext;
  readonly #pending = new Set<Pending>();
  #isClosed = false;

  constructor(context: ArbiterContext) {
    this.#context = context;
  }

  /** Whoever asks more than anybody could decide is told that it was not decided; nothing waits for it. */
  ask(asked: readonly Asked[]): void {
    for (const one of asked) {
      let bytes = one.line.length;
      for (const other of this.#pending) bytes += other.bytes;
      const fits = this.#pending.size < mostPending && bytes <= mostPendingBytes;
      this.#settle(one, fits ? this.#context.decide : cancelAll).catch(this.#context.fail);
    }
  }

  /** The client gave up on what happens in these sessions: no answer is waited for. */
  cancel(sessions: readonly string[]): void {
    for (const { session, controller } of this.#pending) {
      if (session !== null && sessions.includes(session)) controller.abort();
    }
  }

  /** Nobody waits any more. */
  close(): void {
    this.#isClosed = true;
    for (const { controller } of this.#pending) controller.abort();
  }

  async #settle({ method, id, line }: Asked, decide: Decide): Promise<void> {
    const { protocol, questions, report, reply, forward } = this.#context;
    const asking = questions[method] as Asking;
    const params = members(members(JSON.parse(line.toString()))["params"]);
    const question = { ...asking.ask(params), method };
    const pending = { session: question.session, bytes: line.length, controller: new AbortController() };
    this.#pending.add(pending);
    const decision = await decided(decide, question, pending.controller.signal);
    this.#pending.delete(pending);
    if (this.#isClosed) return;
    if (decision === undefined) return forward(line);
    report({ kind: "question-decided", method, decision: decision.kind });
    reply(encodeReply(protocol, id, asking.reply(params, decision)));
  }
}

const cancelAll: Decide = async () => cancel;
const cancel: Decision = { kind: "cancel" };
const decisions: ReadonlySet<unknown> = new Set(["allow", "deny", "cancel"]);

/** Whoever fails to decide, or says something that is no decision, has allowed nothing. */
async function decided(decide: Decide, question: Question, signal: AbortSignal): Promise<Decision | undefined> {
  const cancelled = new Promise<Decision>((resolve) => {
    signal.addEventListener("abort", () => resolve(cancel), { once: true });
  });
  const asked = (async () => decide(question, signal))();
  const decision = await Promise.race([cancelled, asked.catch(() => cancel)]);
  return decision === undefined || decisions.has(members(decision)["kind"]) ? decision : cancel;
}
