import type { Conversation, Step } from "./conversation.ts";

/** One of the protocols in which agents talk to models. */
export interface Dialect {
  readonly name: string;
  /** Whether requests to a path are in this protocol. */
  isAt(path: string): boolean;
  read(body: never, path: string): Conversation;
  /** The answer in one piece. */
  whole(step: Step, model: string): unknown;
  /** The answer as it is streamed. */
  events(step: Step, model: string): readonly StreamEvent[];
}

export interface StreamEvent {
  readonly name?: string;
  /** JSON, but for a bare word such as `[DONE]`. */
  readonly data: unknown;
}

/** The text of what is a text, or a list of parts of which some have one. */
export function textOf(content: Content | undefined): string {
  if (content === undefined || content === null) return "";
  if (typeof content === "string") return content;
  return content.map(({ text }) => text ?? "").join("\n");
}

export type Content = string | null | readonly { readonly type?: string; readonly text?: string }[];
