import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  derBits,
  derElement,
  derField,
  derIdentifier,
  derInteger,
  derOctets,
  derSequence,
  derSet,
  derText,
  derTime,
  derTrue,
} from "../../src/gateway/der.ts";

/** Reads one element, by its own understanding of lengths. */
function readElement(der: Uint8Array): { readonly tag: number; readonly content: Buffer } {
  const bytes = Buffer.from(der);
  const first = bytes.readUInt8(1);
  const extra = first < 0x80 ? 0 : first & 0x7f;
  const length = extra === 0 ? first : bytes.readUIntBE(2, extra);
  const content = bytes.subarray(2 + extra);
  expect(content).toHaveLength(length);
  return { tag: bytes.readUInt8(0), content };
}

describe("an element", () => {
  test("says how long it is, in as few bytes as can be", () => {
    const heads = [0, 127, 128, 255, 256, 65_535, 65_536].map((length) => {
      const der = derElement(0x30, Buffer.alloc(length));
      expect(readElement(der).content).toHaveLength(length);
      return der.subarray(0, der.length - length).toString("hex");
    });
    expect(heads).toEqual(["3000", "307f", "308180", "3081ff", "30820100", "3082ffff", "3083010000"]);
  });

  test("holds what it is given, one after the other", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 200 })), (contents) => {
        const whole = Buffer.concat(contents);
        expect(readElement(derSequence(...contents))).toEqual({ tag: 0x30, content: whole });
        expect(readElement(derSet(...contents))).toEqual({ tag: 0x31, content: whole });
        expect(readElement(derOctets(...contents))).toEqual({ tag: 0x04, content: whole });
        expect(readElement(derField(3, true, ...contents))).toEqual({ tag: 0xa3, content: whole });
        expect(readElement(derField(2, false, ...contents))).toEqual({ tag: 0x82, content: whole });
      }),
    );
  });
});

describe("a value", () => {
  test("that is a number is never negative and never longer than it must be", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 20 }), (bytes) => {
        const { tag, content } = readElement(derInteger(bytes));
        expect(tag).toBe(0x02);
        expect(BigInt(`0x0${content.toString("hex")}`)).toBe(BigInt(`0x0${Buffer.from(bytes).toString("hex")}`));
        expect(content.readInt8(0)).toBeGreaterThanOrEqual(0);
        if (content.length > 1) expect(content.readInt16BE(0)).toBeGreaterThan(0x7f);
      }),
    );
  });

  test.each([
    ["1.2.840.10045.4.3.2", "06082a8648ce3d040302"],
    ["2.5.29.15", "0603551d0f"],
    ["2.999.16384", "0605883781 8000".replace(" ", "")],
  ])("that is the identifier %s is written as others write it", (dotted, hex) => {
    expect(derIdentifier(dotted).toString("hex")).toBe(hex);
  });

  test("that is a row of bits says how many are unused", () => {
    expect(derBits(Buffer.of(0x06), 1).toString("hex")).toBe("03020106");
    expect(derBits(Buffer.of(1, 2)).toString("hex")).toBe("0303000102");
  });

  test("that is text is UTF-8, and truth has one form", () => {
    expect(derText("ä").toString("hex")).toBe("0c02c3a4");
    expect(derTrue.toString("hex")).toBe("0101ff");
  });

  test.each([
    ["2026-02-03T04:05:06.789Z", 0x17, "260203040506Z"],
    ["1950-01-01T00:00:00Z", 0x17, "500101000000Z"],
    ["2049-12-31T23:59:59Z", 0x17, "491231235959Z"],
    ["1949-12-31T23:59:59Z", 0x18, "19491231235959Z"],
    ["2050-01-01T00:00:00Z", 0x18, "20500101000000Z"],
  ])("that is the time %s has the form of its century", (at, tag, text) => {
    expect(readElement(derTime(new Date(at)))).toEqual({ tag, content: Buffer.from(text) });
  });
});
