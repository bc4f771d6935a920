import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Expansion, expandPattern } from "../../src/survey/expand.ts";
import { Reader } from "../../src/survey/reader.ts";

const root = realpathSync(mkdtempSync(join(tmpdir(), "podbot-expand-")));
afterAll(() => rmSync(root, { recursive: true }));

const files = [
  ...[".env", "src/.env.local", "src/a.pem", "src/deep/er/.env", "src/deep/b.pem", "src/deep/b.pe"],
  ...["secrets/key", "src/secrets/key", "src/secrets/more/key", "linked/.env", "linked/x/.env", "[a]/*"],
];

beforeAll(() => {
  for (const file of files) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), "");
  }
  symlinkSync("../linked", join(root, "src/link"));
  symlinkSync("loop", join(root, "src/loop"));
  symlinkSync("nowhere", join(root, "src/dangling"));
});

const expand = (pattern: string, expansion?: Expansion) =>
  expandPattern(`${root}/${pattern}`, true, new Reader(), expansion).map((path) => path.slice(root.length + 1));

describe("a pattern stands for", () => {
  test.each<readonly [string, readonly string[]]>([
    ["**/.env*", [".env", "linked/.env", "linked/x/.env", "src/.env.local", "src/deep/er/.env"]],
    ["**/*.pem", ["src/a.pem", "src/deep/b.pem"]],
    ["*/.env", ["linked/.env"]],
    ["src/*/.env", ["linked/.env"]],
    ["src/*/**/.env", ["linked/.env", "linked/x/.env", "src/deep/er/.env"]],
    ["src/**/.env", ["src/deep/er/.env"]],
    ["**/secrets/key", ["secrets/key", "src/secrets/key"]],
    ["**/secrets/**/key", ["secrets/key", "src/secrets/key", "src/secrets/more/key"]],
    ["**/secrets", ["secrets", "src/secrets"]],
    ["src/link/*", ["linked/x"]],
    ["**/link/.env", ["linked/.env"]],
    ["src/**", ["src", "src/deep", "src/deep/er", "src/secrets", "src/secrets/more"]],
    ["**/**/er", ["src/deep/er"]],
    ["*/loop/*", []],
    ["**/dangling", []],
    ["nowhere/**/x", []],
    [".env/**/x", []],
    ["src/[ab].p?m", ["src/a.pem"]],
    ["src/*.pe[a-z]", ["src/a.pem"]],
    ["[[]a]/*", ["[a]/*"]],
    ["a*a", []],
  ])("%s: %j", (pattern, paths) => {
    expect(expand(pattern)).toEqual(paths);
  });
});

describe("a tree with more names than are read", () => {
  test("is an error that names the directory that has most of them, and what to do", () => {
    for (let at = 0; at < 60; at++) writeFileSync(join(root, `src/deep/er/${at}`), "");
    const failure = () => expand("**/*.pem", { mostNames: 50 });
    expect(failure).toThrow(`reads more than 50 names, `);
    expect(failure).toThrow(new RegExp(` of them in ${root}/src\\.$`));
    expect(failure).toThrow(
      expect.objectContaining({ code: "PATTERN_INVALID", hint: expect.stringContaining(`exclude ${root}/src itself`) }),
    );
    // Nothing is read where nothing can match, and what is written out is not listed.
    expect(expand("linked/**/.env", { mostNames: 50 })).toEqual(["linked/.env", "linked/x/.env"]);
    expect(expand("*/key", { mostNames: 50 })).toEqual(["secrets/key"]);
    expect(expand("src/deep/er/.en[v]", { mostNames: 100 })).toEqual(["src/deep/er/.env"]);
  });

  test("is told of once, where it takes long", () => {
    const told: string[] = [];
    expand("**/*.pem", { longMs: 0, onLong: (pattern) => told.push(pattern) });
    expect(told).toEqual([`${root}/**/*.pem`]);
  });
});
