import { describe, expect, test } from "vitest";
import { parseGitConfig } from "../../src/survey/git-config.ts";

/** Settings in short: `section.key=value`. */
function settings(text: string): readonly string[] {
  return parseGitConfig(text).map(({ section, key, value }) => `${section}.${key}=${value}`);
}

describe("the settings of a git configuration file", () => {
  test("are told in order, each with its section, repeated ones too", () => {
    expect(parseGitConfig("[core]\n\tbare = false\n\thooksPath = .husky\n[include]\npath=a\npath=b\n")).toEqual([
      { section: "core", key: "bare", value: "false" },
      { section: "core", key: "hookspath", value: ".husky" },
      { section: "include", key: "path", value: "a" },
      { section: "include", key: "path", value: "b" },
    ]);
  });

  test.each<[string, string, readonly string[]]>([
    ["nothing", "", []],
    ["sections and keys in lower case, values as they are", "[Core]\nHooksPath = .Husky", ["core.hookspath=.Husky"]],
    ["a key without a value", "[core]\nbare\nx =\n", ["core.bare=", "core.x="]],
    ["lines as Windows ends them", "[core]\r\na = b\r\nc = d\r\n", ["core.a=b", "core.c=d"]],
    ["a setting after its header", "[core] hooksPath = x", ["core.hookspath=x"]],
    ["a header without spaces around", "  [ core ]a=b", ["core.a=b"]],
    ["carriage returns before a name", "\r[core]\n \ra = b\n", ["core.a=b"]],
    ["spaces before quotes", '[core]\na = b "c" d\n', ["core.a=b c d"]],
    ["spaces after quotes that hold nothing", '[core]\na = "" b\n', ["core.a=b"]],
    ["lines that are no settings", "[core]\n= x\n1a = b\n!\na = b", ["core.a=b"]],
  ])("understand %s", (_, text, expected) => {
    expect(settings(text)).toEqual(expected);
  });

  test.each([
    ['[includeIf "gitdir:~/work/"]', "includeif"],
    ['[remote "a]b"]', "remote"],
    ['[remote "a\\"b\\\\"]', "remote"],
    ['[submodule "x#;y"]', "submodule"],
    ["[branch.main]", "branch.main"],
    ['[sub-section "a b"]', "sub-section"],
  ])("lie in a section whatever it is called further: %s", (header, section) => {
    for (const between of ["\n", " "]) expect(settings(`${header}${between}path = x`)).toEqual([`${section}.path=x`]);
  });
});

describe("a value", () => {
  test.each([
    ["plain words with  spaces  ", "plain words with  spaces"],
    ["  led by spaces", "led by spaces"],
    ["a = b", "a = b"],
    ["value # comment", "value"],
    ["value ; comment", "value"],
    ["value#comment", "value"],
    ["# nothing", ""],
    ['"# no comment"', "# no comment"],
    ['"a;b" # comment', "a;b"],
    ['a" # "b', "a # b"],
    ['"  kept"', "  kept"],
    ['""', ""],
    ['"say \\"x\\""', 'say "x"'],
    ["a\\\\b", "a\\b"],
    ["a\\nb\\tc\\bd", "a\nb\tc\bd"],
    ['\\"', '"'],
  ])("written %j is %j", (written, value) => {
    expect(parseGitConfig(`[a]\nb = ${written}\n`)).toEqual([{ section: "a", key: "b", value }]);
  });

  test.each([
    ["one\\\ntwo", "onetwo"],
    ["one\\\r\ntwo", "onetwo"],
    ["one \\\n  two\\\n three", "one   two three"],
    ['"one\\\n#two"', "one#two"],
    ["one\\", "one"],
    ['"never closed ', "never closed "],
  ])("goes on where the line does: %j is %j", (written, value) => {
    expect(parseGitConfig(`[a]\nb = ${written}`)).toEqual([{ section: "a", key: "b", value }]);
  });
});

test("a section's other name is told as it is, for all that follow", () => {
  const text =
    '[remote "origin"]\nurl = a\nfetch = b\n[REMOTE "Or\\"i\\gin"] url = c\n[core] d = e\n[remote ""]\nf = g';
  expect(parseGitConfig(text)).toEqual([
    { section: "remote", subsection: "origin", key: "url", value: "a" },
    { section: "remote", subsection: "origin", key: "fetch", value: "b" },
    { section: "remote", subsection: 'Or"igin', key: "url", value: "c" },
    { section: "core", key: "d", value: "e" },
    { section: "remote", subsection: "", key: "f", value: "g" },
  ]);
});

describe("a comment", () => {
  test.each(["# hooksPath = x", "; hooksPath = x", "  # [core] hooksPath = x"])("holds no setting: %s", (line) => {
    expect(settings(`[core]\n${line}\na = b`)).toEqual(["core.a=b"]);
  });

  test("may follow a header", () => {
    expect(settings("[core] # hooksPath = x\na = b")).toEqual(["core.a=b"]);
  });
});

describe("spellings that would hide a setting", () => {
  test.each([
    ["a comment that ends in a backslash", "[core]\n# dir C:\\\nhooksPath = x\n"],
    ["a comment behind a value that does", "[core]\na = b # c \\\nhooksPath = x\n"],
    ["an escaped backslash at the end of a line", "[core]\na = b\\\\\nhooksPath = x\n"],
    ["two sections on a line", "[a] [core] hooksPath = x\n"],
    ["a key on its section's line", "[core] hooksPath = x"],
    ["a line that makes no sense", "[core]\n= nothing\nhooksPath = x\n"],
    ["a key without a value", "[core]\nbare\nhooksPath = x\n"],
  ])("%s", (_, text) => {
    expect(parseGitConfig(text)).toContainEqual({ section: "core", key: "hookspath", value: "x" });
  });

  test("spaces are kept inside quotes, and a value may go on in the next line", () => {
    expect(parseGitConfig('[a]\nb = "  kept  "  \nc = one \\\n  two\r\nd = un\\\r\nbroken')).toEqual([
      { section: "a", key: "b", value: "  kept  " },
      { section: "a", key: "c", value: "one   two" },
      { section: "a", key: "d", value: "unbroken" },
    ]);
  });
});
