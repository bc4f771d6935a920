import { describe, expect, test } from "vitest";
import { type Conversation, nextStep } from "./conversation.ts";

const asked = (more: Partial<Conversation>): Conversation => ({
  model: "model",
  said: [],
  tools: ["shell"],
  results: [],
  isStreamed: false,
  ...more,
});

describe("a model whose script is the prompt", () => {
  const script = 'Please:\nTOOL shell {"command":"one"}\nTOOL shell {"command":"two"}\nThanks.';

  test("calls one tool after the other, as the results come", () => {
    const steps = [[], ["first"], ["first", "second"]].map((results) => nextStep(asked({ said: [script], results })));
    expect(steps).toEqual([
      { kind: "call", id: "call_1", tool: "shell", input: { command: "one" } },
      { kind: "call", id: "call_2", tool: "shell", input: { command: "two" } },
      { kind: "text", text: "The tool said: second" },
    ]);
  });

  test("says what it heard where there is nothing to call, also after a conversation with calls", () => {
    expect(nextStep(asked({ said: ["around it", "hello\nthere"] }))).toEqual({
      kind: "text",
      text: "The model heard: there",
    });
    const later = asked({ said: [script, "and now?"], results: ["first", "second"] });
    expect(nextStep(later)).toEqual({ kind: "text", text: "The model heard: and now?" });
  });

  test("takes up calls of a later prompt where those of the earlier are done", () => {
    const later = asked({ said: [script, 'TOOL shell {"command":"three"}'], results: ["first", "second"] });
    expect(nextStep(later)).toMatchObject({ kind: "call", input: { command: "three" } });
  });

  test("names the tools that there are where one is not offered", () => {
    expect(nextStep(asked({ said: ["TOOL other {}"] }))).toEqual({
      kind: "text",
      text: "There is no tool other but shell.",
    });
  });

  test("gives a few words to whoever offers no tools", () => {
    expect(nextStep(asked({ said: [script], tools: [] }))).toEqual({ kind: "text", text: "A title" });
  });
});
