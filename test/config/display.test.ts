import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isSecretKey, isTable, showName, showPath, showText, showValue } from "../../src/config/display.ts";

describe("what is shown of a value", () => {
  test.each<[unknown, string]>([
    ["open", '"open"'],
    [true, "true"],
    [3, "3"],
    [2n ** 64n, "18446744073709551616"],
    [Number.NaN, "NaN"],
    [null, "null"],
    [undefined, "undefined"],
    [[], "[]"],
    [["secret"], "[…]"],
    [{}, "{}"],
    [{ secret: 1 }, "{…}"],
    [new Date(0), "a date"],
    ["x".repeat(61), `"${"x".repeat(60)}…"`],
  ])("is %$: $1", (value, shown) => {
    expect(showValue(value)).toBe(shown);
  });

  test("never holds a character that acts on a terminal", () => {
    const hostile = fc.string({
      unit: fc.constantFrom("\x1b", "\x07", "\r", "\n", "\x9b", "\u202e", "\u2066", "a", '"'),
    });
    fc.assert(
      fc.property(hostile, (text) => {
        for (const show of [showText, showValue, showName, showPath]) {
          expect(show(text)).not.toMatch(/[\p{Cc}\u200e-\u202e\u2066-\u2069]/u);
        }
      }),
    );
  });

  test("is short however long the value is", () => {
    const small = (value: unknown) => showValue(value).length < 400;
    fc.assert(fc.property(fc.anything(), small));
    expect(showText("\x1b".repeat(1e6)).length).toBeLessThan(400);
  });
});

describe("names and paths", () => {
  test.each([
    ["npm", "npm"],
    ["g++", '"g++"'],
    ["", '""'],
  ])("the name %j is written %s", (name, shown) => expect(showName(name)).toBe(shown));

  test("a path is written whole, and as it is where that is safe", () => {
    const long = `/${"deep/".repeat(50)}config.toml`;
    expect(showPath(long)).toBe(long);
    expect(showPath("/a\nb")).toBe('"/a\\nb"');
    expect(showPath("/a\u202eb")).toBe("/a\\u202eb");
  });
});

describe("keys whose values stay hidden", () => {
  test.each(["environment.set", "environment.set.TOKEN", "secrets", "secrets.TOKEN.env"])("%s is one", (key) => {
    expect(isSecretKey(key)).toBe(true);
  });
  test.each(["environment.pass", "image", "secretsauce"])("%s is not", (key) => expect(isSecretKey(key)).toBe(false));
});

test("a table is an object of names, not a list, a date or nothing", () => {
  expect([{}, Object.create(null)].every(isTable)).toBe(true);
  expect([[], new Date(), null, undefined, "x", 1].some(isTable)).toBe(false);
});
