import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SessionError } from "../../src/errors.ts";
import { LineReader } from "../../src/wire/ndjson.ts";
import { failure } from "../failure.ts";

function readAll(reader: LineReader): readonly string[] {
  const lines: string[] = [];
  for (let line = reader.next(); line !== null; line = reader.next()) lines.push(line.toString("latin1"));
  return lines;
}

describe("lines", () => {
  test("come out as they went in, however the bytes were cut", () => {
    const piece = fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes));
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const reader = new LineReader();
        const lines: string[] = [];
        for (const bytes of pieces) {
          reader.feed(bytes);
          lines.push(...readAll(reader));
        }
        const whole = Buffer.concat(pieces).toString("latin1").split("\n");
        expect([...lines, reader.rest().toString("latin1")]).toEqual(whole);
      }),
    );
  });

  test("may also be read long after the bytes have come", () => {
    const reader = new LineReader();
    for (const text of ["a", "b\nc", "\n\nd"]) reader.feed(Buffer.from(text));
    expect(readAll(reader)).toEqual(["ab", "c", ""]);
    expect(reader.rest().toString()).toBe("d");
  });

  test("end where the protocol changes: what follows is untouched", () => {
    const reader = new LineReader();
    reader.feed(Buffer.from("hello\n\0\n\n\xff", "latin1"));
    expect(reader.next()?.toString()).toBe("hello");
    expect(reader.rest().toString("latin1")).toBe("\0\n\n\xff");
    expect(reader.rest()).toHaveLength(0);
    expect(reader.next()).toBeNull();
  });

  test("in a million pieces take no time that matters", () => {
    const reader = new LineReader();
    const byte = Buffer.from("x");
    for (let count = 0; count < 1024 * 1024; count += 1) {
      reader.feed(byte);
      reader.next();
    }
    reader.feed(Buffer.from("\n"));
    expect(reader.next()).toHaveLength(1024 * 1024);
  });
});

describe("a line that is too long", () => {
  test.each([
    ["in one piece", ["123456789\n"]],
    ["in two", ["12345", "6789\n"]],
    ["without an end", ["12345", "6789"]],
  ])("ends the reader: %s", (_, pieces) => {
    const reader = new LineReader(8);
    const read = () => {
      for (const text of pieces) {
        reader.feed(Buffer.from(text));
        readAll(reader);
      }
    };
    expect(failure(SessionError, read)).toMatchObject({
      code: "PROTOCOL",
      message: expect.stringContaining("8 bytes"),
    });
    reader.feed(Buffer.from("\nok\n"));
    expect(() => reader.next()).toThrow(SessionError);
  });

  test("is longer than the limit, not as long", () => {
    const reader = new LineReader(8);
    reader.feed(Buffer.from("12345678\n"));
    expect(readAll(reader)).toEqual(["12345678"]);
  });

  test("is one of more than a mebibyte, unless told otherwise", () => {
    const reader = new LineReader();
    reader.feed(Buffer.alloc(1024 * 1024 + 1));
    expect(() => reader.next()).toThrow(SessionError);
  });
});
