import type { Step } from "./conversation.ts";
import { type Content, type Dialect, type StreamEvent, textOf } from "./dialect.ts";

interface Body {
  readonly model: string;
  readonly stream?: boolean;
  readonly tools?: readonly { readonly name: string }[];
  readonly messages: readonly { readonly role: string; readonly content: string | readonly Block[] }[];
}

interface Block {
  readonly type: string;
  readonly text?: string;
  readonly content?: Content;
}

/** Anthropic's Messages. */
export const messages: Dialect = {
  name: "messages",
  isAt: (path) => /^\/v1\/messages(\/count_tokens)?$/.test(path),
  read(body: Body) {
    const blocks = body.messages
      .filter(({ role }) => role === "user")
      .flatMap(({ content }) => (typeof content === "string" ? [{ type: "text", text: content }] : content));
    return {
      model: body.model,
      said: blocks.filter(({ type }) => type === "text").map(({ text }) => text ?? ""),
      tools: (body.tools ?? []).map(({ name }) => name),
      results: blocks.filter(({ type }) => type === "tool_result").map(({ content }) => textOf(content)),
      isStreamed: body.stream === true,
    };
  },
  whole: (step, model) => ({ ...begun(model), content: [blockOf(step)], stop_reason: reasonOf(step) }),
  events(step, model): readonly StreamEvent[] {
    const delta =
      step.kind === "text"
        ? { type: "text_delta", text: step.text }
        : { type: "input_json_delta", partial_json: JSON.stringify(step.input) };
    const empty = step.kind === "text" ? { type: "text", text: "" } : { ...blockOf(step), input: {} };
    return [
      { type: "message_start", message: begun(model) },
      { type: "content_block_start", index: 0, content_block: empty },
      { type: "content_block_delta", index: 0, delta },
      { type: "content_block_stop", index: 0 },
      {
        type: "message_delta",
        delta: { stop_reason: reasonOf(step), stop_sequence: null },
        usage: { output_tokens: 1 },
      },
      { type: "message_stop" },
    ].map((data) => ({ name: data.type, data }));
  },
};

function begun(model: string) {
  const usage = { input_tokens: 1, output_tokens: 1 };
  const about = { id: "msg_1", type: "message", role: "assistant", model };
  return { ...about, content: [], stop_reason: null, stop_sequence: null, usage };
}

function blockOf(step: Step) {
  if (step.kind === "text") return { type: "text", text: step.text };
  return { type: "tool_use", id: step.id, name: step.tool, input: step.input };
}

const reasonOf = (step: Step) => (step.kind === "text" ? "end_turn" : "tool_use");
