import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ModelServer, serveModel } from "./server.ts";

let model: ModelServer;
beforeAll(async () => {
  model = await serveModel();
});
afterAll(() => model[Symbol.asyncDispose]());

const prompt = 'Do it:\nTOOL shell {"command":"ls"}';
const tool = { name: "shell" };

/** In each protocol: the first request, the one with the tool's result, and where calls and texts are in answers. */
const dialects = [
  {
    name: "messages",
    path: "/v1/messages?beta=true",
    first: { model: "m", tools: [tool], messages: [{ role: "user", content: [{ type: "text", text: prompt }] }] },
    second: {
      model: "m",
      tools: [tool],
      messages: [
        { role: "user", content: prompt },
        { role: "assistant", content: [{ type: "tool_use", id: "call_1", name: "shell", input: {} }] },
        {
          role: "user",
          content: [{ type: "tool_result", tool_use_id: "call_1", content: [{ type: "text", text: "a file" }] }],
        },
      ],
    },
    call: { stop_reason: "tool_use", content: [{ type: "tool_use", name: "shell", input: { command: "ls" } }] },
    text: { stop_reason: "end_turn", content: [{ type: "text", text: "The tool said: a file" }] },
    ends: "event: message_stop\ndata: {",
  },
  {
    name: "responses",
    path: "/v1/responses",
    first: {
      model: "m",
      tools: [tool, { type: "web_search" }],
      input: [{ type: "message", role: "user", content: [{ type: "input_text", text: prompt }] }],
    },
    second: {
      model: "m",
      tools: [tool],
      input: [
        { type: "message", role: "user", content: [{ type: "input_text", text: prompt }] },
        { type: "function_call", call_id: "call_1", name: "shell", arguments: "{}" },
        { type: "function_call_output", call_id: "call_1", output: "a file" },
      ],
    },
    call: { output: [{ type: "function_call", name: "shell", arguments: '{"command":"ls"}' }] },
    text: { output: [{ type: "message", content: [{ text: "The tool said: a file" }] }] },
    ends: "event: response.completed\ndata: {",
  },
  {
    name: "chat",
    path: "/v1/chat/completions",
    first: { model: "m", tools: [{ type: "function", function: tool }], messages: [{ role: "user", content: prompt }] },
    second: {
      model: "m",
      tools: [{ type: "function", function: tool }],
      messages: [
        { role: "user", content: [{ type: "text", text: prompt }] },
        { role: "assistant", content: null, tool_calls: [] },
        { role: "tool", tool_call_id: "call_1", content: "a file" },
      ],
    },
    call: {
      choices: [
        {
          finish_reason: "tool_calls",
          message: { tool_calls: [{ function: { name: "shell", arguments: '{"command":"ls"}' } }] },
        },
      ],
    },
    text: { choices: [{ finish_reason: "stop", message: { content: "The tool said: a file" } }] },
    ends: "data: [DONE]",
  },
  {
    name: "gemini",
    path: "/v1beta/models/m:generateContent",
    first: { tools: [{ functionDeclarations: [tool] }], contents: [{ role: "user", parts: [{ text: prompt }] }] },
    second: {
      tools: [{ functionDeclarations: [tool] }],
      contents: [
        { role: "user", parts: [{ text: prompt }] },
        { role: "model", parts: [{ functionCall: { name: "shell", args: {} } }] },
        { role: "user", parts: [{ functionResponse: { name: "shell", response: { output: "a file" } } }] },
      ],
    },
    call: { candidates: [{ content: { parts: [{ functionCall: { name: "shell", args: { command: "ls" } } }] } }] },
    text: { candidates: [{ content: { parts: [{ text: 'The tool said: {"output":"a file"}' }] } }] },
    ends: "data: {",
  },
];

const post = (path: string, body: unknown, headers: Readonly<Record<string, string>> = {}) =>
  fetch(model.url + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: headers["content-encoding"] === "gzip" ? gzipSync(JSON.stringify(body)) : JSON.stringify(body),
  });

describe.each(dialects)("a provider that speaks $name", ({ name, path, first, second, call, text, ends }) => {
  test("has a tool called, and tells its result", async () => {
    expect(await (await post(path, first)).json()).toMatchObject(call);
    expect(await (await post(path, second)).json()).toMatchObject(text);
    expect(model.requests.at(-1)).toMatchObject({ dialect: name, model: "m", tools: ["shell"] });
    expect(model.requests.at(-1)?.results?.join()).toContain("a file");
  });

  test("does the same in a stream", async () => {
    const place = path.replace(":generateContent", ":streamGenerateContent?alt=sse");
    const streamed = await post(place, { ...second, stream: true });
    expect(streamed.headers.get("content-type")).toBe("text/event-stream");
    const events = (await streamed.text()).trimEnd().split("\n\n");
    expect(events.join()).toMatch(/The tool said: .*a file/);
    expect(events.at(-1)).toContain(ends);
    for (const event of events) {
      const [, data = ""] = /^data: (.*)$/m.exec(event) ?? [];
      if (data !== "[DONE]") expect(JSON.parse(data)).toBeTypeOf("object");
    }
    const called = await (await post(place, { ...first, stream: true })).text();
    expect(called).toContain("shell");
    expect(called).toMatch(/command.*ls/);
  });

  test("reads packed requests, and remembers who sent them", async () => {
    const answer = await post(path, first, {
      "content-encoding": "gzip",
      authorization: "Bearer key",
      "x-api-key": "k",
    });
    expect(await answer.json()).toMatchObject(call);
    expect(model.requests.at(-1)).toMatchObject({
      method: "POST",
      path: path.replace(/\?.*/, ""),
      headers: { authorization: "Bearer key", "x-api-key": "k" },
    });
  });
});

describe("besides, it", () => {
  test("counts tokens", async () => {
    const counted = await post("/v1/messages/count_tokens", { model: "m", messages: [] });
    expect(await counted.json()).toMatchObject({ input_tokens: 1 });
  });

  test("is there for those who look, has a list of models, and knows what it does not know", async () => {
    expect((await fetch(`${model.url}/api/hello`, { method: "HEAD" })).status).toBe(200);
    expect(await (await fetch(`${model.url}/v1/models`)).json()).toMatchObject({ data: [{ id: "model" }] });
    expect((await fetch(`${model.url}/elsewhere`)).status).toBe(404);
    expect(model.requests.at(-1)).toMatchObject({ method: "GET", path: "/elsewhere", dialect: null });
  });

  test("says what is wrong with a request that it cannot read", async () => {
    const broken = await fetch(`${model.url}/v1/messages`, { method: "POST", body: "{" });
    expect(broken.status).toBe(400);
    const foreign = await post("/v1/responses", {}, { "content-encoding": "zstd" });
    expect(await foreign.json()).toMatchObject({ error: { message: expect.stringContaining("zstd") } });
  });
});
