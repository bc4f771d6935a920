// @module-tag security
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { mostDepth, mostNames, mostNoted, Scanner, tooMuch } from "../../src/bridge/scanner.ts";

/** The names and the spelled values of the object that a line is, or what is wrong with the line. */
function scan(line: string): Record<string, string> | string {
  const scanner = new Scanner();
  const bytes = Buffer.from(`${line}\n`);
  scanner.open(bytes);
  const members = scanner.scan(0);
  if (members === null) return scanner.problem;
  expect(scanner.end).toBe(bytes.length - 1);
  const decode = (latin1: string) => Buffer.from(latin1, "latin1").toString();
  return Object.fromEntries(members.map(({ name, start, end }) => [decode(name), decode(scanner.text(start, end))]));
}

describe("an object is scanned", () => {
  test("for its members, as they were spelled", () => {
    expect(scan('{"a":1,"b":[1,{"c":"}"}],"c":"x\\"y\\u00e9ü","d":null}')).toEqual({
      a: "1",
      b: '[1,{"c":"}"}]',
      c: '"x\\"y\\u00e9ü"',
      d: "null",
    });
    expect(scan(' \t{ "a" : true\t, "b" : false } ')).toEqual({ a: "true", b: "false" });
    expect(scan("{}")).toEqual({});
    expect(scan('{"":[],"a":{}}')).toEqual({ "": "[]", a: "{}" });
  });

  test("with names as they mean, not as they are spelled", () => {
    expect(scan('{"\\u0061\\n":1,"ü":2,"\\ud83d\\ude00":3}')).toEqual({ "a\n": "1", ü: "2", "😀": "3" });
  });

  test("whatever JSON it is", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: "grapheme" }), fc.jsonValue({ maxDepth: 5 })), (value) => {
        const spelled = Object.fromEntries(Object.entries(value).map(([name, part]) => [name, JSON.stringify(part)]));
        expect(scan(JSON.stringify(value))).toEqual(spelled);
      }),
      { numRuns: 500 },
    );
  });

  test("with as many members as it has", () => {
    const many = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`name ${index}`, index]));
    expect(Object.keys(scan(JSON.stringify(many)))).toHaveLength(5000);
  });
});

describe("a line is refused", () => {
  const nested = (depth: number) => `{"a":${"[".repeat(depth - 1)}${"]".repeat(depth - 1)}}`;

  test.each([
    ["", "it is not an object"],
    ["[]", "it is not an object"],
    ["[{}]", "it is not an object"],
    ['"{}"', "it is not an object"],
    ["null", "it is not an object"],
    ["\u{feff}{}", "it is not an object"],
    ["\0{}", "it is not an object"],
    ["{}{}", "something follows the object"],
    ["{} x", "something follows the object"],
    ["{}\r{}", "something follows the object"],
    ["{}\0", "something follows the object"],
    ["{", "a member has no name"],
    ["{,}", "a member has no name"],
    ["{a:1}", "a member has no name"],
    ["{'a':1}", "a member has no name"],
    ['{"a":1,}', "a member has no name"],
    ["{/**/}", "a member has no name"],
    ['{"a"}', "a name has no value"],
    ['{"a" 1}', "a name has no value"],
    ['{"a":}', "a value is none"],
    ['{"a":1', "an object does not end"],
    ['{"a":1 "b":2}', "an object does not end"],
    ['{"a":[1}', "a list does not end"],
    ['{"a":[1', "a list does not end"],
    ['{"a":[1,]}', "a value is none"],
    ['{"a":NaN}', "a value is none"],
    ['{"a":Infinity}', "a value is none"],
    ['{"a":undefined}', "a value is none"],
    ['{"a":+1}', "a value is none"],
    ['{"a":.5}', "a value is none"],
    ['{"a":-}', "a value is none"],
    ['{"a":tru}', "a value is none"],
    ['{"a":t', "a value is none"],
    ['{"a":1.', "an object does not end"],
    ['{"a":-0e+', "an object does not end"],
    ['{"a":fals}', "a value is none"],
    ['{"a":nul}', "a value is none"],
    ['{"a":trueish}', "an object does not end"],
    ['{"a":01}', "an object does not end"],
    ['{"a":1.}', "an object does not end"],
    ['{"a":1e}', "an object does not end"],
    ['{"a":0x10}', "an object does not end"],
    ['{"a":1\f}', "an object does not end"],
    ['{"a":1\u{a0}}', "an object does not end"],
    ['{"a":1\u{2028}}', "an object does not end"],
    ['{"a":"', "a string does not end"],
    ['{"a', "a string does not end"],
    ['{"a":"\\', "a string has an unknown escape"],
    ['{"a":"\\x41"}', "a string has an unknown escape"],
    ['{"a":"\\u00g0"}', "a string has an unknown escape"],
    ['{"a":"\\u00"}', "a string has an unknown escape"],
    ['{"a":"\t"}', "a string has a control character"],
    ['{"a":"\r"}', "a string has a control character"],
    ['{"a":"\0"}', "a string has a control character"],
    ['{"a":1,"a":2}', "a name is there twice"],
    ['{"a":1,"\\u0061":2}', "a name is there twice"],
    ['{"a":[{"b":{"c":1,"d":2,"c":3}}]}', "a name is there twice"],
    ['{"ü":1,"\\u00fc":2}', "a name is there twice"],
  ])("%j: %s", (line, problem) => {
    expect(scan(line)).toBe(problem);
  });

  test("where a name is there twice among many", () => {
    const names = Array.from({ length: 100 }, (_, index) => `"n${index}":0`);
    expect(scan(`{${names.join(",")}}`)).toHaveProperty("n99");
    for (const again of [0, 15, 16, 17, 99]) {
      expect(scan(`{${[...names, `"n${again}":1`].join(",")}}`)).toBe("a name is there twice");
    }
  });

  test("where it is nested too deeply, and not one level before", () => {
    expect(scan(nested(mostDepth))).toHaveProperty("a");
    expect(scan(nested(mostDepth + 1))).toBe("it is nested too deeply");
    expect(scan(`{"a":${'{"a":'.repeat(mostDepth)}`)).toBe("it is nested too deeply");
    expect(scan(`{"a":${"[".repeat(1_000_000)}`)).toBe("it is nested too deeply");
  });

  test("exactly where JSON.parse refuses it, too, or where a name is there twice", () => {
    const token = fc.constantFrom(
      ..."{}[]:, \t",
      '"a"',
      '"b"',
      '"\\u0061"',
      "1",
      "-0.5e3",
      "true",
      "null",
      '"',
      "\\",
      "x",
    );
    fc.assert(
      fc.property(fc.array(token, { maxLength: 12 }), (tokens) => {
        const line = `{"z":${tokens.join("")}`;
        const found = scan(line);
        if (found === "a name is there twice") return;
        const parse = () => JSON.parse(line);
        if (typeof found === "string") expect(parse).toThrow();
        else expect(parse()).toEqual(Object.fromEntries(Object.entries(found).map(([k, v]) => [k, JSON.parse(v)])));
      }),
      { numRuns: 20_000 },
    );
  });
});

test("one scanner reads line after line of a block, and what lies in them", () => {
  const scanner = new Scanner();
  const bytes = Buffer.from('{"a":[1,"\\\\",{"b":2}]}\n{"broken\n{"c":{"d":[],"e":"\\n"}}\n');
  const text = bytes.toString();
  scanner.open(bytes);
  const slice = ({ start, end }: { start: number; end: number }) => scanner.text(start, end);
  const [list] = scanner.scan(0) ?? [];
  expect(scanner.end).toBe(text.indexOf("\n"));
  expect(scanner.items(list as never)?.map(slice)).toEqual(["1", '"\\\\"', '{"b":2}']);
  expect(scanner.scan(text.indexOf('{"broken'))).toBeNull();
  const start = text.indexOf('{"c"');
  const [object] = scanner.scan(start) ?? [];
  expect(scanner.members(object as never)?.map((member) => [member.name, slice(member)])).toEqual([
    ["d", "[]"],
    ["e", '"\\n"'],
  ]);
});

test("an object has no more names, and a line no more members that are noted, than it may cost", () => {
  const scan = (json: string) => {
    const scanner = new Scanner();
    const bytes = Buffer.from(`${json}\n`);
    scanner.open(bytes);
    return scanner.scan(0) === null ? scanner.problem : null;
  };
  const names = (count: number) => Array.from({ length: count }, (_, index) => `"${index}":1`).join(",");
  expect(scan(`{"a":[{${names(mostNames)}}]}`)).toBeNull();
  expect(scan(`{"a":[{${names(mostNames + 1)}}]}`)).toBe("an object has too many names");
  const half = `{${names(mostNoted / 3)}}`;
  expect(scan(`{"a":${half},"b":${half}}`)).toBeNull();
  expect(scan(`{"a":${half},"b":${half},"c":${half}}`)).toBe(tooMuch);
});
