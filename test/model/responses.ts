import type { Step } from "./conversation.ts";
import { type Content, type Dialect, type StreamEvent, textOf } from "./dialect.ts";

interface Body {
  readonly model: string;
  readonly stream?: boolean;
  readonly tools?: readonly { readonly name?: string }[];
  readonly input: string | readonly Item[];
}

interface Item {
  readonly type?: string;
  readonly role?: string;
  readonly content?: Content;
  readonly output?: Content;
}

/** OpenAI's Responses. */
export const responses: Dialect = {
  name: "responses",
  isAt: (path) => path === "/v1/responses",
  read(body: Body) {
    const items: readonly Item[] =
      typeof body.input === "string" ? [{ role: "user", content: body.input }] : body.input;
    return {
      model: body.model,
      said: items.filter(({ role }) => role === "user").map(({ content }) => textOf(content)),
      tools: (body.tools ?? []).flatMap(({ name }) => (name === undefined ? [] : [name])),
      results: items.filter(({ type }) => type?.endsWith("_call_output")).map(({ output }) => textOf(output)),
      isStreamed: body.stream === true,
    };
  },
  whole: (step, model) => ended(step, model),
  events(step, model): readonly StreamEvent[] {
    const item = itemOf(step);
    const begun = { ...ended(step, model), status: "in_progress", output: [], usage: null };
    const delta = { output_index: 0, item_id: item.id };
    return [
      { type: "response.created", response: begun },
      { type: "response.output_item.added", output_index: 0, item: { ...item, status: "in_progress" } },
      step.kind === "text"
        ? { type: "response.output_text.delta", ...delta, content_index: 0, delta: step.text }
        : { type: "response.function_call_arguments.delta", ...delta, delta: JSON.stringify(step.input) },
      { type: "response.output_item.done", output_index: 0, item },
      { type: "response.completed", response: ended(step, model) },
    ].map((data) => ({ name: data.type, data }));
  },
};

function ended(step: Step, model: string) {
  const details = { input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } };
  const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2, ...details };
  return { id: "resp_1", object: "response", model, status: "completed", output: [itemOf(step)], usage };
}

function itemOf(step: Step) {
  if (step.kind === "call") {
    const words = { call_id: step.id, name: step.tool, arguments: JSON.stringify(step.input) };
    return { type: "function_call", id: `fc_${step.id}`, status: "completed", ...words };
  }
  const content = [{ type: "output_text", text: step.text, annotations: [] }];
  return { type: "message", id: "msg_1", role: "assistant", status: "completed", content };
}
