// @module-tag security
import fc from "fast-check";
import { expect, test } from "vitest";
import { Spellings } from "../../src/bridge/spellings.ts";

test("bytes are read as they are, whatever was read before", () => {
  const spellings = new Spellings();
  // Few letters and lengths, so that many fall into one place.
  const text = fc.oneof(
    fc.string({ unit: fc.constantFrom("a", "b", "é"), maxLength: 5 }),
    fc.string({ maxLength: 50 }),
  );
  fc.assert(
    fc.property(text, text, (before, word) => {
      const bytes = Buffer.from(`${before}"${word}"`);
      const start = Buffer.byteLength(before) + 1;
      expect(spellings.read(bytes, start, bytes.length - 1)).toBe(Buffer.from(word).toString("latin1"));
    }),
    { numRuns: 20_000 },
  );
});

test("texts that begin, end and are long alike are told apart, again and again", () => {
  const spellings = new Spellings();
  for (const word of ["abc", "adc", "abc", "abc", "adc"]) {
    expect(spellings.read(Buffer.from(`"${word}"`), 1, 4)).toBe(word);
  }
});
