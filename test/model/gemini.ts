import type { Step } from "./conversation.ts";
import type { Dialect } from "./dialect.ts";

interface Body {
  readonly tools?: readonly { readonly functionDeclarations?: readonly { readonly name: string }[] }[];
  readonly contents: readonly { readonly role?: string; readonly parts: readonly Part[] }[];
}

interface Part {
  readonly text?: string;
  readonly functionResponse?: { readonly response: unknown };
}

const address = /^\/v1(?:beta)?\/models\/([^/:]+):(generateContent|streamGenerateContent|countTokens)$/;

/** Google's generateContent. */
export const gemini: Dialect = {
  name: "gemini",
  isAt: (path) => address.test(path),
  read(body: Body, path) {
    const [, model = "", verb] = address.exec(path) ?? [];
    const parts = body.contents.filter(({ role }) => role !== "model").flatMap((content) => content.parts);
    return {
      model,
      said: parts.flatMap(({ text }) => (text === undefined ? [] : [text])),
      tools: (body.tools ?? []).flatMap(({ functionDeclarations = [] }) =>
        functionDeclarations.map(({ name }) => name),
      ),
      results: parts.flatMap(({ functionResponse: it }) => (it === undefined ? [] : [JSON.stringify(it.response)])),
      isStreamed: verb === "streamGenerateContent",
    };
  },
  whole: (step, model) => answer(step, model),
  events: (step, model) => [{ data: answer(step, model) }],
};

function answer(step: Step, model: string) {
  const part = step.kind === "text" ? { text: step.text } : { functionCall: { name: step.tool, args: step.input } };
  const usage = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 };
  const content = { role: "model", parts: [part] };
  return { modelVersion: model, candidates: [{ index: 0, content, finishReason: "STOP" }], usageMetadata: usage };
}
