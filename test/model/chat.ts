import type { Step } from "./conversation.ts";
import { type Content, type Dialect, textOf } from "./dialect.ts";

interface Body {
  readonly model: string;
  readonly stream?: boolean;
  readonly tools?: readonly { readonly function: { readonly name: string } }[];
  readonly messages: readonly { readonly role: string; readonly content?: Content }[];
}

/** OpenAI's Chat Completions, as most others speak it too. */
export const chat: Dialect = {
  name: "chat",
  isAt: (path) => path === "/v1/chat/completions",
  read(body: Body) {
    const by = (role: string) =>
      body.messages.filter((message) => message.role === role).map(({ content }) => textOf(content));
    return {
      model: body.model,
      said: by("user"),
      tools: (body.tools ?? []).map((tool) => tool.function.name),
      results: by("tool"),
      isStreamed: body.stream === true,
    };
  },
  whole: (step, model) => ({
    ...about("chat.completion", model),
    choices: [{ index: 0, message: { role: "assistant", ...wordsOf(step) }, finish_reason: reasonOf(step) }],
    usage,
  }),
  events(step, model) {
    const chunk = (delta: object, reason: string | null) => ({
      data: { ...about("chat.completion.chunk", model), choices: [{ index: 0, delta, finish_reason: reason }] },
    });
    return [
      chunk({ role: "assistant", content: "" }, null),
      chunk(wordsOf(step), null),
      chunk({}, reasonOf(step)),
      { data: { ...about("chat.completion.chunk", model), choices: [], usage } },
      { data: "[DONE]" },
    ];
  },
};

const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };

const about = (object: string, model: string) => ({ id: "chatcmpl-1", object, created: 1, model });

function wordsOf(step: Step) {
  if (step.kind === "text") return { content: step.text };
  const called = { name: step.tool, arguments: JSON.stringify(step.input) };
  return { content: null, tool_calls: [{ index: 0, id: step.id, type: "function", function: called }] };
}

const reasonOf = (step: Step) => (step.kind === "text" ? "stop" : "tool_calls");
