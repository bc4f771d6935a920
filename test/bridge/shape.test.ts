import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { mostNoted, Scanner } from "../../src/bridge/scanner.ts";
import { cut, type Edit, findEdits, mergeShapes, Pattern, type Shape, splice } from "../../src/bridge/shape.ts";

function reshape(json: string, shape: Shape) {
  const scanner = new Scanner();
  const bytes = Buffer.from(`{"x":${json}}\n`);
  scanner.open(bytes);
  const [span] = scanner.scan(0) ?? [];
  if (span === undefined) throw new Error(scanner.problem);
  const edits: Edit[] = [];
  if (!findEdits(scanner, span, new Pattern(shape), edits)) return { json: null, paths: [] };
  return { json: splice(bytes, span.start, span.end, edits).toString(), paths: edits.map(({ path }) => path) };
}

describe("what is cut", () => {
  test.each([
    ['{"a":1}', "{}"],
    ['{"a":1,"b":2}', '{"b":2}'],
    ['{"b":2,"a":1}', '{"b":2}'],
    ['{ "b" : 2 , "a" : 1 , "c" : 3 }', '{ "b" : 2 , "c" : 3 }'],
    ['{"A":1,"_a":2,"a":3,"b":4,"\\u0061-":5}', '{"b":4}'],
    ['{"b":[{"a":{"deep":[1,2]},"c":0}]}', '{"b":[{"a":{"deep":[1,2]},"c":0}]}'],
    ["[1,2]", "[1,2]"],
    ['"a"', '"a"'],
    ["null", "null"],
  ])("from %s leaves %s", (before, after) => {
    expect(reshape(before, { a: () => cut }).json).toBe(after);
  });

  test("is any choice of members or items, and the rest stays as it was", () => {
    const value = fc.jsonValue({ maxDepth: 2 });
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.boolean(), value), { maxLength: 8 }),
        fc.constantFrom("", " ", "\t "),
        (parts, blank) => {
          const spelled = parts.map(([, part]) => JSON.stringify(part));
          const kept = parts.filter(([goes]) => !goes).map(([, part]) => part);
          let at = 0;
          const choose = () => (parts[at++]?.[0] === true ? cut : undefined);
          const list = reshape(`[${blank}${spelled.join(`${blank},${blank}`)}${blank}]`, { "*": choose });
          expect(JSON.parse(list.json as string)).toEqual(JSON.parse(JSON.stringify(kept)));
          const members = spelled.map((json, index) => `"n${index}"${blank}:${blank}${json}`);
          const shape = Object.fromEntries(
            parts.filter(([goes]) => goes).map((part) => [`n${parts.indexOf(part)}`, () => cut as typeof cut]),
          );
          const object = reshape(`{${members.join(`${blank},${blank}`)}}`, shape);
          expect(Object.values(JSON.parse(object.json as string))).toEqual(JSON.parse(JSON.stringify(kept)));
        },
      ),
      { numRuns: 500 },
    );
  });
});

describe("a shape", () => {
  test("reaches into objects and lists, and names the way", () => {
    const shape: Shape = { list: { "*": { name: () => '"new"' } }, one: { two: () => cut } };
    expect(reshape('{"list":[{"name":"old","x":1},7,{"name":"ü"}],"one":{"two":2}}', shape)).toEqual({
      json: '{"list":[{"name":"new","x":1},7,{"name":"new"}],"one":{}}',
      paths: ["list.name", "list.name", "one.two"],
    });
  });

  test("names the way in its own words, however long somebody spells it", () => {
    const long = "_".repeat(100_000);
    expect(reshape(`{"o_N-e${long}":{" TWO\u00a0":1,"${long}":2}}`, { one: { two: () => cut } })).toEqual({
      json: `{"o_N-e${long}":{"${long}":2}}`,
      paths: ["one.two"],
    });
  });

  test("remembers how names were spelled, but not without end", () => {
    const scanner = new Scanner();
    const pattern = new Pattern({ one: () => cut });
    const member = (name: string) => {
      const bytes = Buffer.from(`{"x":{"${name}":1}}\n`);
      scanner.open(bytes);
      const [span] = scanner.scan(0) ?? [];
      const edits: Edit[] = [];
      findEdits(scanner, span as never, pattern, edits);
      return edits.length;
    };
    for (let round = 0; round < 2; round += 1) {
      for (let count = 0; count < 400; count += 1) {
        expect(member(`o${"_".repeat(count)}ne`)).toBe(1);
        expect(member(`o${"_".repeat(count)}n`)).toBe(0);
      }
    }
  });

  test("may be about all that a value has, be it a list or an object", () => {
    const shape: Shape = { all: { "**": (json) => (json === "1" ? cut : undefined), known: () => '"set"' } };
    expect(reshape('{"all":[1,2,1]}', shape)).toEqual({ json: '{"all":[2]}', paths: ["all", "all"] });
    expect(reshape('{"all":{"a":1,"b":2,"known":1}}', shape)).toEqual({
      json: '{"all":{"b":2,"known":"set"}}',
      paths: ["all", "all.known"],
    });
    expect(reshape('{"all":{"a":1}}', { all: { "*": () => cut } }).json).toBe('{"all":{"a":1}}');
  });

  test("is not held against more than it may cost", () => {
    const shape: Shape = { a: { "*": { b: () => undefined } } };
    const list = (items: number) => `{"a":[${Array(items).fill('{"c":1}').join(",")}]}`;
    expect(reshape(list(1000), shape).json).toBe(list(1000));
    expect(reshape(list(mostNoted / 2 + 1), shape).json).toBeNull();
    expect(reshape(list(mostNoted + 1), shape).json).toBeNull();
    expect(reshape(`{"a":[${Array(200_000).fill("1").join(",")}]}`, shape).json).not.toBeNull();
    expect(reshape(`{"a":[${Array(mostNoted).fill("1").join(",")}]}`, shape).json).toBeNull();
  });

  test("may be about a value or about the items that it is instead", () => {
    const shape = { cwd: { "": () => '"x"', "*": () => '"y"' }, other: { deep: () => '"z"' } };
    expect(reshape('{"cwd":"a","other":1}', shape).json).toBe('{"cwd":"x","other":1}');
    expect(reshape('{"cwd":["a",{}]}', shape).json).toBe('{"cwd":["y","y"]}');
  });

  test("has nothing but what was written into it", () => {
    const json = '{"__proto__":1,"constructor":{"name":2},"toString":3,"hasOwnProperty":4}';
    expect(reshape(json, { a: () => cut }).json).toBe(json);
    expect(reshape(json, { a: { b: () => cut } }).json).toBe(json);
  });

  test("is made of two: what both are about, the first decides", () => {
    const merged = mergeShapes(
      { a: { b: () => undefined, c: () => '"first"' } },
      { a: { b: () => '"second"', c: () => '"second"' }, d: () => cut },
    );
    expect(reshape('{"a":{"b":1,"c":2},"d":3}', merged).json).toBe('{"a":{"b":"second","c":"first"}}');
    expect(() => mergeShapes({ a: () => cut }, { a: {} })).toThrow("do not fit");
  });
});
