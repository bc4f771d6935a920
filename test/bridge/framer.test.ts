import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Framer } from "../../src/bridge/framer.ts";

/** Feeds the pieces, and gives the lines with their newlines, what was skipped, and how much is left. */
function read(limit: number, pieces: readonly Buffer[]) {
  const skipped: [number, string][] = [];
  const framer = new Framer(limit, (bytes, first) => skipped.push([bytes, String.fromCharCode(first)]));
  const blocks = pieces.flatMap((piece) => framer.push(piece));
  for (const block of blocks) expect(block.at(-1)).toBe(0x0a);
  const text = Buffer.concat(blocks).toString("latin1");
  return { lines: text.match(/[^\n]*\n/g) ?? [], skipped, rest: framer.rest() };
}

/** The same by the whole text at once. */
function expected(limit: number, text: string) {
  const parts = text.split("\n");
  const rest = parts.pop() as string;
  return {
    lines: parts.filter((line) => line.length <= limit).map((line) => `${line}\n`),
    skipped: parts.filter((line) => line.length > limit).map((line) => [line.length, line[0]]),
    rest: rest.length,
  };
}

const text = '{"a":1}\n\n{"bb":22}\r\n{"much":"too long for this"}\nx\n{"c":"ü"}\n{"un';
const bytes = Buffer.from(text);

describe("lines", () => {
  test("are the same wherever the bytes are cut once, twice, or everywhere", () => {
    for (const limit of [12, 1000]) {
      const whole = expected(limit, bytes.toString("latin1"));
      for (let one = 0; one <= bytes.length; one += 1) {
        for (let other = one; other <= bytes.length; other += 1) {
          const pieces = [bytes.subarray(0, one), bytes.subarray(one, other), bytes.subarray(other)];
          expect(read(limit, pieces)).toEqual(whole);
        }
      }
      expect(
        read(
          limit,
          [...bytes].map((byte) => Buffer.of(byte)),
        ),
      ).toEqual(whole);
    }
  });

  test("are those of the whole, for any bytes, cuts and limit", () => {
    const piece = fc.array(fc.constantFrom(..."{ab\n"), { maxLength: 12 }).map((parts) => Buffer.from(parts.join("")));
    fc.assert(
      fc.property(fc.array(piece), fc.integer({ min: 1, max: 20 }), (pieces, limit) => {
        expect(read(limit, pieces)).toEqual(expected(limit, Buffer.concat(pieces).toString("latin1")));
      }),
    );
  });

  test("that came in one piece are passed on as they lie there", () => {
    const framer = new Framer(1000, () => {});
    const [block] = framer.push(bytes);
    expect(block?.buffer).toBe(bytes.buffer);
    expect(block?.byteOffset).toBe(bytes.byteOffset);
  });
});

describe("what is held", () => {
  test("is one line in a million pieces, in little time", () => {
    const framer = new Framer(1 << 21, () => {});
    const byte = Buffer.from("x");
    for (let count = 0; count < 1 << 20; count += 1) framer.push(byte);
    expect(framer.rest()).toBe(1 << 20);
    expect(framer.push(Buffer.from("\n"))[0]).toHaveLength((1 << 20) + 1);
  });

  test("is nothing of a line that is too long, however long it gets", () => {
    const skipped: number[] = [];
    const framer = new Framer(1024, (bytes) => skipped.push(bytes));
    const piece = Buffer.alloc(65_536, "x");
    const before = process.memoryUsage().arrayBuffers;
    for (let count = 0; count < 4096; count += 1) expect(framer.push(piece)).toEqual([]);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1 << 20);
    const after = framer.push(Buffer.from("\nnext\n"));
    expect(Buffer.concat(after).toString()).toBe("next\n");
    expect(skipped).toEqual([4096 * 65_536]);
  });
});
