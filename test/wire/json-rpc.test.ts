import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  ConfigError,
  type ErrorCode,
  errorTable,
  FilesystemError,
  MachineError,
  PodbotError,
  PolicyError,
  SessionError,
  UsageError,
  WallError,
} from "../../src/errors.ts";
import {
  encodeError,
  encodeNotification,
  encodeRequest,
  encodeResult,
  type Message,
  parseMessage,
} from "../../src/wire/json-rpc.ts";
import { failure } from "../failure.ts";

const id = fc.oneof(fc.string(), fc.integer(), fc.constant(null));
const params = fc.option(
  fc.oneof(fc.dictionary(fc.string(), fc.jsonValue()), fc.array(fc.jsonValue())) as fc.Arbitrary<never>,
  { nil: undefined },
);
/** As it arrives: JSON knows no -0. */
const arrived = (value: unknown) => JSON.parse(JSON.stringify(value));

function crossed(error: unknown, rpcCode?: number): PodbotError {
  const message = parseMessage(encodeError(7, error, rpcCode));
  if (message.kind !== "error") throw new Error(`not an error: ${message.kind}`);
  return message.error;
}

describe("a message crosses unchanged", () => {
  test("as a request", () => {
    fc.assert(
      fc.property(id, fc.string(), params, (id, method, params) => {
        const sent = params === undefined ? { method } : { method, params };
        expect(parseMessage(encodeRequest(id, method, params))).toEqual(arrived({ kind: "request", id, ...sent }));
        expect(parseMessage(encodeNotification(method, params))).toEqual(arrived({ kind: "notification", ...sent }));
      }),
    );
  });

  test("as a result, in one line", () => {
    fc.assert(
      fc.property(id, fc.jsonValue(), (id, result) => {
        const line = encodeResult(id, result);
        expect(line.indexOf("\n")).toBe(line.length - 1);
        expect(parseMessage(Buffer.from(line))).toEqual(arrived({ kind: "result", id, result }));
      }),
    );
  });

  test("and no result is a result too", () => {
    expect(parseMessage(encodeResult(1, undefined))).toEqual({ kind: "result", id: 1, result: null });
  });
});

describe("an error crosses", () => {
  test.each(Object.keys(errorTable) as ErrorCode[])("with its words, its way out and its exit status: %s", (code) => {
    const sent = new PodbotError(code, "No.", { hint: "Do this.", details: { path: "/x" } });
    const error = crossed(sent);
    expect(error).toMatchObject({ code, message: "No.", hint: "Do this.", details: { path: "/x" } });
    expect(error.exitStatus).toBe(sent.exitStatus);
  });

  test.each([
    [UsageError, "USAGE"],
    [ConfigError, "CONFIG_INVALID"],
    [PolicyError, "PATH_REFUSED"],
    [MachineError, "RUNTIME_DIRECTORY"],
    [WallError, "WALL_FAILED"],
    [FilesystemError, "FILESYSTEM"],
    [SessionError, "SESSION_ENDED"],
    [PodbotError, "INTERNAL"],
  ] as const)("as %o", (family, code) => {
    const error = crossed(new family(code, "No."));
    expect(error.constructor).toBe(family);
    expect(error).toMatchObject({ hint: undefined, details: {} });
  });

  test.each([
    [new TypeError("x is not a function"), "x is not a function"],
    ["thrown", "thrown"],
    [undefined, "undefined"],
  ])("as a defect where Podbot has no name for it: %s", (thrown, message) => {
    expect(crossed(thrown)).toMatchObject({ code: "INTERNAL", message });
  });

  test("without details that JSON cannot hold", () => {
    const details: Record<string, unknown> = { number: 1n };
    details["self"] = details;
    const error = crossed(new SessionError("BOX_LOST", "Gone.", { hint: "Again.", details }));
    expect(error).toMatchObject({ code: "BOX_LOST", message: "Gone.", hint: "Again.", details: {} });
  });

  test("with JSON-RPC's own code, if it has one", () => {
    expect(encodeError(null, new SessionError("PROTOCOL", "No such method."), -32601)).toBe(
      '{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"No such method.","data":{"code":"PROTOCOL","details":{}}}}\n',
    );
  });

  test.each([
    [
      "a code of a later Podbot",
      { code: -32000, data: { code: "QUOTA", hint: "Wait.", details: { n: 1 } } },
      "PROTOCOL",
    ],
    ["a code that every object has", { code: -32000, data: { code: "constructor" } }, "PROTOCOL"],
    ["a code that is none", { code: -32000, data: { code: 5 } }, "PROTOCOL"],
    ["data that is none", { code: 1, data: "x" }, "PROTOCOL"],
    ["no data", { code: -32601 }, "PROTOCOL"],
    ["a defect of another program", { code: -32603, data: null }, "INTERNAL"],
  ])("safely from %s", (_, error, code) => {
    const line = JSON.stringify({ jsonrpc: "2.0", id: 1, error: { message: "No.", ...error } });
    const message = parseMessage(line) as Extract<Message, { kind: "error" }>;
    expect(message.error).toBeInstanceOf(PodbotError);
    expect(message.error).toMatchObject({ code, message: "No." });
  });

  test("keeping the hint and the details of what it does not know", () => {
    const data = { code: "QUOTA", hint: "Wait.", details: { n: 1 } };
    const line = JSON.stringify({ jsonrpc: "2.0", id: 1, error: { code: -32000, message: "No.", data } });
    const { error } = parseMessage(line) as Extract<Message, { kind: "error" }>;
    expect(error).toMatchObject({ hint: "Wait.", details: { n: 1, rpcCode: -32000 } });
  });
});

describe("what is no message is refused", () => {
  const message = (value: unknown) => JSON.stringify(value);
  test.each([
    ["no JSON", "{"],
    ["nothing", ""],
    ["null", "null"],
    ["a batch", message([{ jsonrpc: "2.0", id: 1, method: "x" }])],
    ["no version", message({ id: 1, method: "x" })],
    ["another version", message({ jsonrpc: "1.0", id: 1, method: "x" })],
    ["a version that is a number", message({ jsonrpc: 2.0, id: 1, method: "x" })],
    ["a method that is no string", message({ jsonrpc: "2.0", id: 1, method: 1 })],
    ["a method that is null", message({ jsonrpc: "2.0", id: 1, method: null })],
    ["an id that is an object", message({ jsonrpc: "2.0", id: {}, method: "x" })],
    ["an id that is a truth value", message({ jsonrpc: "2.0", id: true, result: 1 })],
    ["an id beyond all numbers", '{"jsonrpc":"2.0","id":1e999,"method":"x"}'],
    ["parameters that are text", message({ jsonrpc: "2.0", id: 1, method: "x", params: "y" })],
    ["parameters that are null", message({ jsonrpc: "2.0", id: 1, method: "x", params: null })],
    ["a request with a result", message({ jsonrpc: "2.0", id: 1, method: "x", result: 1 })],
    ["a request with an error", message({ jsonrpc: "2.0", id: 1, method: "x", error: {} })],
    ["a result and an error", message({ jsonrpc: "2.0", id: 1, result: 1, error: { code: 1, message: "" } })],
    ["neither of the two", message({ jsonrpc: "2.0", id: 1 })],
    ["a result without an id", message({ jsonrpc: "2.0", result: 1 })],
    ["an error that is null", message({ jsonrpc: "2.0", id: 1, error: null })],
    ["an error without a code", message({ jsonrpc: "2.0", id: 1, error: { message: "" } })],
    ["an error with half a code", message({ jsonrpc: "2.0", id: 1, error: { code: 1.5, message: "" } })],
    ["an error without a message", message({ jsonrpc: "2.0", id: 1, error: { code: 1 } })],
  ])("%s", (_, line) => {
    expect(failure(SessionError, () => parseMessage(line)).code).toBe("PROTOCOL");
  });

  test.each([
    ["bytes that are not UTF-8", [0x22, 0xff, 0x22]],
    ["a byte order mark", [0xef, 0xbb, 0xbf, 0x7b, 0x7d]],
  ])("%s", (_, bytes) => {
    expect(failure(SessionError, () => parseMessage(Buffer.from(bytes))).code).toBe("PROTOCOL");
  });

  test("whatever comes, nothing but a message or a PROTOCOL error goes", () => {
    const anything = fc.oneof(
      fc.uint8Array({ maxLength: 100 }),
      fc.json(),
      fc
        .record(
          {
            jsonrpc: fc.constantFrom("2.0", "2", 2),
            id: fc.jsonValue(),
            method: fc.jsonValue(),
            params: fc.jsonValue(),
            result: fc.jsonValue(),
            error: fc.oneof(
              fc.jsonValue(),
              fc.record({ code: fc.jsonValue(), message: fc.jsonValue(), data: fc.jsonValue() }),
            ),
          },
          { requiredKeys: [] },
        )
        .map((value) => JSON.stringify(value)),
    );
    fc.assert(
      fc.property(anything, (line) => {
        try {
          parseMessage(line);
        } catch (error) {
          expect(error).toMatchObject({ code: "PROTOCOL" });
        }
      }),
      { numRuns: 1000 },
    );
  });
});
