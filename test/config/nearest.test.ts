import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { nearestName } from "../../src/config/nearest.ts";

const candidates = ["network", "sandbox", "filesystem", "environment", "image"];

describe("the nearest name", () => {
  test.each([
    ["netwrok", "network"],
    ["sandbx", "sandbox"],
    ["file_system", "filesystem"],
    ["imgae", "image"],
    ["image", "image"],
  ])("of %s is %s", (word, expected) => {
    expect(nearestName(word, candidates)).toBe(expected);
  });

  test.each(["", "x", "database", "environment".repeat(9)])("of %s is none", (word) => {
    expect(nearestName(word, candidates)).toBeUndefined();
  });

  test("is the word itself when that is a candidate", () => {
    const word = fc.string({ minLength: 1, maxLength: 64 });
    fc.assert(
      fc.property(word, fc.array(word), (name, others) => {
        expect(nearestName(name, [...others, name])).toBe(name);
      }),
    );
  });
});
