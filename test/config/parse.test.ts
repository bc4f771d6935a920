import { inspect } from "node:util";
import fc from "fast-check";
import { stringify as toToml } from "smol-toml";
import { describe, expect, test } from "vitest";
import { stringify as toYaml } from "yaml";
import { parseConfig } from "../../src/config/parse.ts";
import { ConfigError } from "../../src/errors.ts";
import { failureOf } from "./scratch.ts";

const formats = ["toml", "jsonc", "json", "yaml", "yml"] as const;
const parse = (format: string, content: string | Uint8Array) =>
  parseConfig(`/x/config.${format}`, typeof content === "string" ? new TextEncoder().encode(content) : content);

describe("every format", () => {
  const key = fc.string({ minLength: 1 }).filter((name) => name !== "__proto__" && name !== "constructor");
  const scalar = fc.oneof(fc.string(), fc.boolean(), fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }));
  const data = fc.dictionary(
    key,
    fc.oneof(scalar, fc.array(scalar), fc.dictionary(key, fc.oneof(scalar, fc.dictionary(key, scalar)))),
  );

  test("gives the same data for the same file", async () => {
    await fc.assert(
      fc.asyncProperty(data, async (content) => {
        const wanted = JSON.parse(JSON.stringify(content));
        expect(await parse("json", JSON.stringify(content, null, 2))).toEqual(wanted);
        expect(await parse("yaml", toYaml(wanted, { aliasDuplicateObjects: false }))).toEqual(wanted);
        expect(await parse("toml", toToml(wanted))).toEqual(wanted);
      }),
    );
  });

  test.each(formats)("of .%s may be empty, or begin with a byte order mark", async (format) => {
    expect(await parse(format, "")).toEqual({});
    expect(await parse(format, "\ufeff")).toEqual({});
    expect(await parse(format, "\n \n")).toEqual({});
  });

  test.each([
    ["toml", "# why\n"],
    ["json", "// why\n/* and how */"],
    ["jsonc", "// why"],
    ["yaml", "# why"],
    ["yaml", "---\n...\n"],
  ])("of .%s may be nothing but comments: %j", async (format, text) => {
    expect(await parse(format, text)).toEqual({});
  });

  test.each(["json", "jsonc"])("of .%s takes comments and trailing commas", async (format) => {
    expect(await parse(format, '{ // one\n "a": [1, 2,], /* two */ "b": null, }')).toEqual({ a: [1, 2], b: null });
  });
});

describe("a file that cannot be parsed", () => {
  test.each<[string, string, string]>([
    ["toml", "a = 1\nb = ?\n", "/x/config.toml:2 is not valid TOML: invalid value"],
    ["toml", "a = 1\na = 2\n", "/x/config.toml:2 has the same key twice"],
    ["toml", "[a]\n[a]\n", "/x/config.toml:2 has the same key twice"],
    ["toml", "\n[__proto__]\n", "/x/config.toml:2 has a key called __proto__ or constructor"],
    ["toml", "a = { constructor = 1 }", "/x/config.toml:1 has a key called __proto__ or constructor"],
    ["json", '{\n"a": 1,\n"a": 2}', "/x/config.json:3 has the same key twice"],
    ["json", '{\n"__proto__": {}}', "/x/config.json:2 has a key called __proto__ or constructor"],
    ["json", '{"a": {"constructor": 1}}', "/x/config.json:1 has a key called __proto__ or constructor"],
    ["json", '{"a" 1}', "/x/config.json:1 is not valid JSON: colon expected"],
    ["json", '{"a": "x', "/x/config.json:1 is not valid JSON: unexpected end of string"],
    ["json", "{}\n{}", "/x/config.json:2 is not valid JSON: end of file expected"],
    ["json", "[]", "/x/config.json is not a table of keys and values"],
    ["json", "null", "/x/config.json is not a table of keys and values"],
    ["yaml", "- a", "/x/config.yaml is not a table of keys and values"],
    ["yaml", "garbage", "/x/config.yaml is not a table of keys and values"],
    ["yaml", "a: 1\na: 2", "/x/config.yaml:2 has the same key twice"],
    ["yaml", "a: 1\n__proto__: 2", "/x/config.yaml:2 has a key called __proto__ or constructor"],
    ["yaml", "a: {constructor: 2}", "/x/config.yaml:1 has a key called __proto__ or constructor"],
    ["yaml", "a: 1\n---\nb: 1", "/x/config.yaml:2 holds more than one YAML document"],
    ["yaml", "%YAML 1.1\n---\na: yes", "/x/config.yaml:1 asks for another YAML than 1.2"],
    ["yaml", 'a: 1\nb: "hunter2\n', "/x/config.yaml:3 is not valid YAML: a quote, bracket, comma or colon is missing"],
    ["yaml", "a: b: c", "/x/config.yaml:1 is not valid YAML: two keys on one line"],
    ["yaml", "a:\n\tb: 1", "/x/config.yaml:2 is not valid YAML: tabs cannot indent"],
    ["yaml", "a: @x", "/x/config.yaml:1 is not valid YAML: a value that begins with this character needs quotes"],
    ["yaml", "a: &x 1\nb: *x", "/x/config.yaml:2 uses an alias (*name); write the value out"],
    ["yaml", "a: *x", "/x/config.yaml:1 uses an alias (*name); write the value out"],
    ["yaml", "a: *", "/x/config.yaml:1 is not valid YAML: bad alias"],
    ["yaml", "a: !foo x", "/x/config.yaml:1 uses an unknown tag; the only ones are !secret and !secret?"],
    ["yaml", "a: !!binary aGk=", "/x/config.yaml:1 uses an unknown tag; the only ones are !secret and !secret?"],
    ["yaml", "a: !!set {b}", "/x/config.yaml:1 uses an unknown tag; the only ones are !secret and !secret?"],
    ["yaml", "a: !secret [b]", "/x/config.yaml:1 uses an unknown tag; the only ones are !secret and !secret?"],
    ["yaml", "a: !secret {b: 1}", "/x/config.yaml:1 uses an unknown tag; the only ones are !secret and !secret?"],
    ["yaml", "!secret a: 1", "/x/config.yaml:1 is not valid YAML for a configuration: a key must be plain text"],
    ["yaml", "? [a]\n: 1", "/x/config.yaml:1 is not valid YAML for a configuration: a key must be plain text"],
  ])("of .%s is named with its line: %j", async (format, text, message) => {
    const error = await failureOf(parse(format, text));
    expect(error.message).toBe(message);
    expect(error.code).toBe("CONFIG_UNREADABLE");
  });

  test.each(formats)("of .%s with bytes that are not text is named with the line", async (format) => {
    const nul = new TextEncoder().encode("# a\n# b\0\n");
    expect((await failureOf(parse(format, nul))).message).toBe(`/x/config.${format}:2 holds a NUL byte`);
    const latin = Buffer.concat([Buffer.from("# ä\n\n# "), Buffer.from([0xe4]), Buffer.from("\n")]);
    expect((await failureOf(parse(format, latin))).message).toBe(`/x/config.${format}:3 is not valid UTF-8`);
  });

  test.each([
    ["toml", 'TOKEN = "hunter2\n'],
    ["toml", "TOKEN = hunter2\n"],
    ["json", '{"TOKEN": hunter2}'],
    ["yaml", 'TOKEN: "hunter2'],
    ["yaml", "TOKEN: |hunter2"],
    ["yaml", "TOKEN: !hunter2 x"],
    ["yaml", "TOKEN: 'x' hunter2"],
    ["yaml", "]hunter2"],
  ])("of .%s does not bring a secret out: %j", async (format, text) => {
    const error = await failureOf(parse(format, text));
    expect(inspect(error, { depth: 5 }).replaceAll(/\n\s+at .*/g, "")).not.toContain("hunter2");
  });
});

describe("a hostile file", () => {
  const mebibyte = 1 << 20;
  const fill = (text: string) => text.repeat(Math.floor(mebibyte / text.length) - 1);
  const numbered = (line: (index: number) => string) =>
    Array.from({ length: 60_000 }, (_, index) => line(index)).join("\n");

  test.each<[string, string, string]>([
    ["toml", "a line of garbage", fill("x")],
    ["toml", "open lists", `a=${fill("[")}`],
    ["toml", "open tables", `a=${fill("{a=")}`],
    ["toml", "backslashes", `a="${fill("\\")}`],
    ["json", "a line of garbage", fill("x")],
    ["json", "open lists", fill("[")],
    ["json", "open tables", fill('{"a":')],
    ["json", "lists that close", `${"[".repeat(40)}${"]".repeat(40)}`],
    ["json", "an open string", `"${fill("x")}`],
    ["yaml", "a line of garbage", fill("x")],
    ["yaml", "open lists", `a: ${fill("[")}`],
    ["yaml", "open tables", `a: ${fill("{")}`],
    ["yaml", "lists in lists", fill("- ")],
    ["yaml", "keys of keys", fill("? ")],
    ["yaml", "blocks in blocks", Array.from({ length: 500 }, (_, index) => `${" ".repeat(index)}a:`).join("\n")],
    ["yaml", "closing brackets", fill("]")],
    ["yaml", "commas", `[${fill(",")}`],
    ["yaml", "quotes", fill('"')],
    ["yaml", "many keys", numbered((index) => `k${index}: 1`)],
    ["yaml", "many anchors", numbered((index) => `- &k${index} 1`)],
    [
      "yaml",
      "laughs",
      `a: &a [x,x,x,x,x,x,x,x,x]\n${[..."bcdefghi"].map((to, index) => `${to}: &${to} [${`*${"abcdefgh"[index]},`.repeat(9)}]`).join("\n")}`,
    ],
  ])("of .%s is refused quickly and in few words: %s", async (format, _, content) => {
    const error = await failureOf(parse(format, content));
    expect(error.code).toBe("CONFIG_UNREADABLE");
    expect(error.message.length).toBeLessThan(200);
    expect(error.message).toContain(`/x/config.${format}`);
  });

  test.each([
    ["toml", `a${fill(".a")}=1`],
    ["toml", `[a${fill(".a")}]`],
    ["toml", numbered((index) => `k${index} = 1`)],
    ["json", `{${numbered((index) => `"k${index}": 1,`)}}`],
  ])("of .%s that only is large is parsed quickly", async (format, content) => {
    await parse(format, content);
  });

  test.each(formats)("of .%s, whatever is in it, ends in a table or a ConfigError", async (format) => {
    const unit = fc.constantFrom(
      ..."[]{}()<>:,.=#\"'\\|&*!?%@-_ \t\n\r\0\u0085a0é",
      "__proto__",
      "!secret",
      "---",
      "*a",
      "&a",
    );
    const bytes = fc.oneof(fc.uint8Array({ maxLength: 200 }), fc.string({ unit, maxLength: 200 }));
    await fc.assert(
      fc.asyncProperty(bytes, async (content) => {
        const outcome = await parse(format, content).catch((error: unknown) => error);
        expect(outcome instanceof ConfigError || (typeof outcome === "object" && !(outcome instanceof Error))).toBe(
          true,
        );
      }),
      { numRuns: 1000 },
    );
  });
});

describe("YAML", () => {
  test("has tags for secrets, and names for keys whatever they look like", async () => {
    const text =
      "set:\n  A: !secret X\n  B: !secret? Y\n  C: !secret\n  D: !!str 7\ntrue: 1\nnull: 2\n7: 3\nempty:\nyes: no";
    expect(await parse("yaml", text)).toEqual({
      set: { A: "!secret X", B: "!secret? Y", C: "!secret ", D: "7" },
      true: 1,
      null: 2,
      "7": 3,
      empty: null,
      yes: "no",
    });
  });
});
