/** What somebody outside decides about a question that an agent asks. */
export type Decision =
  | { readonly kind: "allow"; readonly remember?: boolean }
  | { readonly kind: "deny"; readonly reason?: string }
  | { readonly kind: "cancel" };

export interface Question {
  /** More kinds may come; whoever does not know one leaves it undecided. */
  readonly kind: "permission" | (string & {});
  /** The request of the protocol by which it was asked. */
  readonly method: string;
  /** The agent's own name for its session, where the question has one. */
  readonly session: string | null;
  readonly title: string;
  /** The protocol's own parameters, as the agent wrote them: nothing in there is to be believed. */
  readonly detail: unknown;
}

/** Undefined: not decided here. The question then goes on to whoever would have got it anyway. */
export type Decide = (question: Question, signal: AbortSignal) => Promise<Decision | undefined>;
