// @module-tag security
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { BridgeEvent } from "../../src/bridge/event.ts";
import { Inspector } from "../../src/bridge/inspector.ts";
import { mostNoted, tooMuch } from "../../src/bridge/scanner.ts";
import { Pattern } from "../../src/bridge/shape.ts";
import { Judge } from "../../src/bridge/verdict.ts";
import { acpPolicy, codexPolicy, inspect } from "./inspect.ts";

const update = '{"jsonrpc":"2.0","method":"session/update","params":{"text":"ü\u{2028}"}}';
const blocked = '{"jsonrpc":"2.0","id":1,"method":"fs/read_text_file","params":{}}';

describe("permitted lines", () => {
  test("are one view of the chunk, with whatever line ends they have", () => {
    const chunk = Buffer.from(`${update}\n${update}\r\n ${update} \n`);
    const { pieces } = new Inspector("to-client", acpPolicy, () => {}).push(chunk);
    expect(pieces).toHaveLength(1);
    expect(pieces[0]?.buffer).toBe(chunk.buffer);
    expect(pieces[0]).toEqual(chunk);
  });

  test("stay around those that go", () => {
    const lines = `${update}\n${blocked}\n\n \t\r\n${update}\nnonsense\n${update}\n`;
    const { out, answers, events } = inspect("to-client", acpPolicy, lines);
    expect(out).toBe(`${update}\n${update}\n${update}\n`);
    expect(answers).toHaveLength(1);
    expect(events).toEqual([
      { kind: "request-denied", method: "fs/read_text_file", id: 1 },
      { kind: "frame-refused", direction: "to-client", reason: "it is not an object", bytes: 8 },
    ]);
  });

  test("stay whatever they are cut into", () => {
    const whole = Buffer.from(`${update}\n${blocked}\r\n[]\n${update}\r\n`);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: whole.length })), (cuts) => {
        const inspector = new Inspector("to-client", acpPolicy, () => {});
        const ends = [0, ...cuts.sort((one, other) => one - other), whole.length];
        const out: Buffer[] = [];
        const answers: string[] = [];
        for (let index = 1; index < ends.length; index += 1) {
          const found = inspector.push(whole.subarray(ends[index - 1], ends[index]));
          out.push(...found.pieces);
          answers.push(...found.answers);
        }
        expect(Buffer.concat(out).toString()).toBe(`${update}\n${update}\r\n`);
        expect(answers).toHaveLength(1);
      }),
    );
  });
});

describe("what is refused", () => {
  const bytes = (text: string, ...more: number[]) =>
    Buffer.concat([Buffer.from(text), Buffer.from(more), Buffer.from("\n")]);

  test.each<[string, Buffer, string, number | null | undefined]>([
    ["a batch", bytes(`[${blocked}]`), "it is not an object", undefined],
    ["two objects", bytes(`${update}${blocked}`), "something follows the object", null],
    ["a bare carriage return", bytes(`${update}\r${blocked}`), "something follows the object", null],
    ["two carriage returns", bytes(`${update}\r\r`), "something follows the object", null],
    ["a carriage return first", bytes(`\r${update}`), "it is not an object", undefined],
    ["a byte order mark", bytes(`\u{feff}${blocked}`), "it is not an object", undefined],
    ["broken UTF-8", bytes('{"jsonrpc":"2.0","method":"', 0xc0, 0xaf), "it is not UTF-8", null],
    ["UTF-8 cut short", bytes('{"a":"', 0xe2, 0x80), "it is not UTF-8", null],
    ["NUL", bytes(`${update}\0`), "something follows the object", null],
    ["a second method", bytes('{"jsonrpc":"2.0","id":1,"method":"x","method":"fs/x"}'), "a name is there twice", null],
    ["no version", bytes('{"id":1,"method":"fs/read_text_file"}'), "it is not of JSON-RPC 2.0", 1],
    [
      "another id",
      bytes('{"jsonrpc":"2.0","id":{},"method":"x"}'),
      "its id is neither a string nor a whole number",
      null,
    ],
    ["a response of no use", bytes('{"jsonrpc":"2.0","id":1}'), "it is neither a request nor a response", undefined],
    ["words", bytes("Listening on port 80"), "it is not an object", undefined],
  ])("%s goes nowhere, and whoever may wait is answered", (_what, line, reason, id) => {
    const after = Buffer.from(`${update}\n`);
    const found = inspect("to-client", acpPolicy, Buffer.concat([line, after]));
    expect(found.out).toBe(after.toString());
    expect(found.events).toEqual([{ kind: "frame-refused", direction: "to-client", reason, bytes: line.length - 1 }]);
    const message = `Message refused by Podbot: ${reason}`;
    const error = { code: -32600, message, data: { reason: "podbot_frame_policy" } };
    expect(found.answers).toEqual(id === undefined ? [] : [{ jsonrpc: "2.0", id, error }]);
    const inward = inspect("to-agent", acpPolicy, Buffer.concat([line, after]));
    expect(inward).toMatchObject({ out: after.toString(), answers: [], events: [{ direction: "to-agent", reason }] });
  });

  test("is a line that is too long, and the next is judged as ever", () => {
    const policy = { ...acpPolicy, maxFrameBytes: 200 };
    const long = `{"jsonrpc":"2.0","method":"x","params":"${"x".repeat(300)}"}`;
    const { out, answers, events } = inspect(
      "to-client",
      policy,
      `${long}\n${blocked}\n${"x".repeat(300)}\n${update}\n`,
    );
    expect(out).toBe(`${update}\n`);
    expect(answers.map(({ id }) => id)).toEqual([null, 1]);
    expect(events.map(({ kind }) => kind).sort()).toEqual(["frame-refused", "frame-refused", "request-denied"]);
  });

  test("is a line with more parts than are looked at, and nothing else waits long for it", () => {
    const list = `[${Array(mostNoted).fill("1").join(",")}]`;
    const lines = [
      `{"jsonrpc":"2.0","id":1,"result":{"authMethods":${list}}}`,
      `{"jsonrpc":"2.0","id":1,"error":{"data":{"authMethods":${list}}}}`,
      `{"jsonrpc":"2.0","id":"ü","method":"_x","params":{"authMethods":${list}}}`,
      `{"jsonrpc":"2.0","method":"x","params":{"authMethods":${list}}}`,
    ];
    const found = inspect("to-client", acpPolicy, `${lines.join("\n")}\n${update}\n`);
    expect(found.out).toBe(`${update}\n`);
    expect(found.answers.map(({ id, error }) => [id, error.code])).toEqual([["ü", -32600]]);
    expect(found.events).toMatchObject(lines.map(() => ({ kind: "frame-refused", reason: tooMuch })));
    const elsewhere = `{"jsonrpc":"2.0","id":1,"result":{"other":${list}}}\n`;
    expect(inspect("to-client", acpPolicy, elsewhere)).toMatchObject({ out: elsewhere, events: [] });
  });

  test("is what cannot be judged, whatever is wrong with those who judge", () => {
    const fails = () => {
      throw new RangeError("it is too much");
    };
    const rules = { denies: fails, initialize: null, params: null, result: new Pattern({ a: fails }), error: null };
    const judge = new Judge("acp", rules);
    const refused = { kind: "refused", reason: "it cannot be judged", answer: "null" };
    for (const line of ['{"jsonrpc":"2.0","method":"x"}', '{"jsonrpc":"2.0","id":1,"result":{"a":1}}']) {
      judge.open(Buffer.from(`${line}\n`));
      expect(judge.judge(0)).toEqual(refused);
      expect(judge.end).toBe(line.length);
    }
    const other = '{"jsonrpc":"2.0","id":1,"result":{"b":1}}';
    judge.open(Buffer.from(`${other}\n`));
    expect(judge.judge(0)).toMatchObject({ kind: "pass" });
  });

  test("is a line that never ends, once", () => {
    const events: BridgeEvent[] = [];
    const inspector = new Inspector("to-client", acpPolicy, (event) => events.push(event));
    expect(inspector.push(Buffer.from(blocked)).pieces).toEqual([]);
    inspector.end();
    expect(events).toEqual([
      { kind: "frame-refused", direction: "to-client", reason: "it does not end", bytes: blocked.length },
    ]);
    const clean = new Inspector("to-client", acpPolicy, () => expect.unreachable());
    clean.push(Buffer.from(`${update}\n`));
    clean.end();
  });
});

describe("questions", () => {
  const decide = async () => undefined;
  const question =
    '{"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{"toolCall":{"locations":[{"path":"/w/a"}]}}}';

  test("are withheld where somebody decides, and only there", () => {
    const lines = `${update}\n${question}\n${update}\n`;
    const { out, asked } = inspect("to-client", { ...acpPolicy, decide }, lines);
    expect(out).toBe(`${update}\n${update}\n`);
    expect(asked.map(({ method, id, line }) => [method, id, line.toString()])).toEqual([
      ["session/request_permission", '"q"', `${question}\n`],
    ]);
    expect(inspect("to-client", acpPolicy, lines)).toMatchObject({ out: lines, asked: [] });
  });

  test("are those of requests alone, with the paths of outside", () => {
    const policy = { ...acpPolicy, decide, paths: { outside: "/srv/work", inside: "/w" } };
    const { out, asked } = inspect("to-client", policy, `${question}\n`);
    expect(out).toBe("");
    expect(asked[0]?.line.toString()).toContain('"path":"/srv/work/a"');
    const told = '{"jsonrpc":"2.0","method":"session/request_permission"}\n';
    expect(inspect("to-client", policy, told)).toMatchObject({ out: told, asked: [] });
    const odd = '{"jsonrpc":"2.0","id":1,"method":"toString"}\n';
    expect(inspect("to-client", { ...policy, delegation: "allow_all" }, odd)).toMatchObject({ out: odd, asked: [] });
  });

  test("end when the client gives up, which the agent learns as well", () => {
    const cancel = '{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}\n';
    expect(inspect("to-agent", { ...acpPolicy, decide }, cancel)).toMatchObject({ out: cancel, cancelled: ["s"] });
    expect(inspect("to-agent", acpPolicy, cancel)).toMatchObject({ out: cancel, cancelled: [] });
    const interrupt = '{"id":1,"method":"turn/interrupt","params":{"threadId":"t","turnId":"u"}}\n';
    expect(inspect("to-agent", { ...codexPolicy, decide }, interrupt)).toMatchObject({
      out: interrupt,
      cancelled: ["t"],
    });
    const odd = '{"jsonrpc":"2.0","method":"session/cancel","params":[1]}\n{"jsonrpc":"2.0","id":1,"result":{}}\n';
    expect(inspect("to-agent", { ...acpPolicy, decide }, odd)).toMatchObject({ out: odd, cancelled: [] });
  });
});
