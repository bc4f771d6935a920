import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import type { Plan } from "../../../src/plan/plan.ts";
import { renderOptions } from "../../../src/wall/bubblewrap/render.ts";
import { quote, renderScript } from "../../../src/wall/bubblewrap/script.ts";
import { allowlist, planFor, presetRules } from "../../plan/ordinary.ts";

const directory = mkdtempSync(join(tmpdir(), "podbot-script-"));
afterAll(() => rmSync(directory, { recursive: true }));

const filter = new Uint8Array([0, 1, 2, 255]);
const plan = planFor(presetRules("!@all", "@base"), { "/home/u/.netrc": "file", "/home/u/it's\n$HOME": "directory" });

/** Stands where bubblewrap would: tells its words, its environment, and what can be read at each descriptor from 20. */
const teller = join(directory, "tell");
writeFileSync(
  teller,
  `#!/bin/bash
printf '%s\\0' "$@" >${directory}/words
printf '%s\\0' A="\${A-unset}" B="\${B-unset}" C="\${C-unset}" SECRET="\${SECRET-unset}" >${directory}/environment
for ((at = 20; at < 40; at++)); do [ ! -e /dev/fd/$at ] || cat <&$at >${directory}/data-$at; done
[ ! -e ${directory}/held ] || echo held >${directory}/was-held
exit 3
`,
  { mode: 0o755 },
);

function runScript(given: Plan, env: Readonly<Record<string, string>> = {}) {
  const script = renderScript(given, filter, teller);
  const { status, stderr } = spawnSync("bash", {
    input: script,
    env: { PATH: process.env["PATH"], ...env },
    encoding: "utf8",
  });
  const told = (name: string) => readFileSync(join(directory, name), "utf8").split("\0").slice(0, -1);
  return { status, stderr, words: told("words"), environment: told("environment") };
}

describe("the script of a plan, run by bash,", () => {
  test("hands bubblewrap the plan's words, by path, and its status back", () => {
    let descriptor = 20;
    const expected = renderOptions(plan, filter, {
      bind: ({ access, source, target }) => [access === "ro" ? "--ro-bind" : "--bind", source, target],
      data: () => `${descriptor++}`,
      copy: () => `${descriptor++}`,
    });
    const { status, stderr, words } = runScript(plan);
    expect(stderr).toBe("");
    expect(status).toBe(3);
    expect(words).toEqual([...expected, "--", "/run/podbot/enter", "--isolate", "2", "--", "make", "test"]);
    expect(words).toContain("/home/u/project");
  });

  test("has an empty directory for a clone, and says that it brings no token", () => {
    const own = { access: "rw", why: "" } as const;
    const clone = { kind: "own", part: "clone", target: "/work", ...own } as const;
    const secrets = { kind: "own", part: "secrets", target: "/run/secrets", ...own } as const;
    const given = { ...plan, operations: [...plan.operations, clone, secrets] };
    expect(renderScript(given, filter, teller)).toMatch(/^# Nor does it bring a token/m);
    const { words } = runScript(given);
    const at = words.indexOf("/work");
    expect(words.slice(at - 3, at + 1)).toEqual(["--perms", "0755", "--tmpfs", "/work"]);
    expect(words).not.toContain("/run/secrets");
    expect(renderScript(plan, filter, teller)).not.toContain("token");
  });

  test("says where it has no doors", () => {
    const note = /^# .*no doors.*--network none/m;
    expect(renderScript({ ...plan, network: allowlist }, filter, teller)).toMatch(note);
    expect(renderScript(plan, filter, teller)).not.toMatch(note);
    const { words } = runScript({ ...plan, network: allowlist });
    expect(words).toContain("--unshare-net");
    expect(words).not.toContain("--info-fd");
  });

  test("hands in what is copied, byte by byte", () => {
    const { words } = runScript(plan);
    const data = (option: string) =>
      words.flatMap((word, at) => (word === option ? [readFileSync(join(directory, `data-${words[at + 1]}`))] : []));
    expect(data("--seccomp")).toEqual([Buffer.from(filter)]);
    expect(data("--ro-bind-data")).toEqual([Buffer.alloc(0)]);
    expect(data("--file").map(String)).toEqual(
      plan.operations.flatMap((operation) => (operation.kind === "file" ? [operation.content] : [])),
    );
  });

  test("hands in what a file holds by now", () => {
    const source = join(directory, "it's a file");
    const copy = { kind: "copy", source, target: "/c", identity: null, why: "" } as const;
    writeFileSync(source, "by now\n");
    const { words } = runScript({ ...plan, operations: [copy] });
    expect(readFileSync(join(directory, `data-${words[words.indexOf("--file") + 1]}`), "utf8")).toBe("by now\n");
  });

  test("passes the plan's variables, with values of whoever runs it, and no others", () => {
    const variables: Plan["variables"] = [
      { name: "A", from: "caller" },
      { name: "B", from: "plan", value: "it's\t$HOME" },
      { name: "C", from: "secret", secret: "token", optional: false },
    ];
    const { environment } = runScript({ ...plan, variables }, { A: "a  'b' $(c)", SECRET: "hunter2" });
    expect(environment).toEqual(["A=a  'b' $(c)", "B=it's\t$HOME", "C=unset", "SECRET=unset"]);
  });

  test("makes the sandbox's own directories first", () => {
    const kept = join(directory, "kept", "it's");
    runScript({ ...plan, kept: [kept] });
    expect(existsSync(kept)).toBe(true);
  });

  test("holds names while it runs, and not afterwards", () => {
    const held: Plan["held"] = [
      { path: join(directory, "held"), placeholder: { kind: "directory" }, directory: null },
      { path: join(directory, "held", "it's"), placeholder: { kind: "file", content: "x'\n" }, directory: null },
    ];
    const { status } = runScript({ ...plan, held });
    expect(status).toBe(3);
    expect(existsSync(join(directory, "was-held"))).toBe(true);
    expect(existsSync(join(directory, "held"))).toBe(false);
  });

  test("starts nothing where a name that must be held is taken", () => {
    const taken = join(directory, "taken");
    writeFileSync(taken, "the owner's");
    rmSync(join(directory, "words"));
    const script = renderScript(
      { ...plan, held: [{ path: taken, placeholder: { kind: "file", content: "" }, directory: null }] },
      filter,
      teller,
    );
    expect(spawnSync("bash", { input: script }).status).not.toBe(0);
    expect(existsSync(join(directory, "words"))).toBe(false);
    expect(readFileSync(taken, "utf8")).toBe("the owner's");
  });
});

describe("the script of a plan, read by people,", () => {
  test("says what it is, starts bubblewrap, and ends with the command", () => {
    const script = renderScript(plan, filter, "/usr/bin/bwrap");
    const lines = script.split("\n");
    expect(lines.slice(0, 2)).toEqual(["#!/usr/bin/env bash", expect.stringMatching(/^# Reproduces a run of podbot/)]);
    expect(lines).toContain("exec env -i  \\");
    expect(lines).toContain("  /usr/bin/bwrap \\");
    expect(lines).toContain("  --ro-bind / / \\");
    expect(lines).toContain("  -- /run/podbot/enter --isolate 2 -- make test \\");
  });

  test("has one option a line, and permissions beside what they are for", () => {
    const lines = renderScript(plan, filter, "/usr/bin/bwrap").split("\n");
    expect(lines).toContain("  --perms 1777 --tmpfs /tmp \\");
    expect(lines).toContain("  --bind /home/u/project /home/u/project \\");
    expect(lines).toContain("  --chdir /home/u/project \\");
  });

  test("holds no secret", () => {
    const variables: Plan["variables"] = [
      { name: "TOKEN", from: "owner", layer: "environment.set" },
      { name: "KEY", from: "secret", secret: "key", optional: true },
    ];
    const script = renderScript({ ...plan, variables }, filter, "/usr/bin/bwrap");
    expect(script).toContain('${TOKEN+TOKEN="$TOKEN"} ${KEY+KEY="$KEY"}');
  });
});

describe("a quoted word", () => {
  test.each([
    ["plain-word_1", "plain-word_1"],
    ["/usr/bin/a.b,c:d@e%f+g=h", "/usr/bin/a.b,c:d@e%f+g=h"],
    ["", "''"],
    ["a b", "'a b'"],
    ["~", "'~'"],
    ["$(x)", "'$(x)'"],
    ["it's", "'it'\\''s'"],
    ["ü", "'ü'"],
    ["a\nb", "$'a\\u000ab'"],
    ["\x1b[2J", "$'\\u001b[2J'"],
    ["\\'\t", "$'\\\\\\'\\u0009'"],
  ])("%j is written %s", (word, expected) => {
    expect(quote(word)).toBe(expected);
  });

  test("means in bash what it meant, and plays no tricks on a terminal", () => {
    const word = fc
      .string({
        unit: fc.oneof(
          fc.constantFrom(...`ab '"\\$\`!*?[]{}()<>|&;#~=\n\t\r\x1b\x7f`),
          fc.string({ unit: "grapheme", minLength: 1, maxLength: 1 }),
        ),
        maxLength: 8,
      })
      .filter((text) => !text.includes("\0"));
    fc.assert(
      fc.property(fc.array(word, { minLength: 20, maxLength: 60 }), (words) => {
        const script = `printf '%s\\0' ${words.map(quote).join(" ")}`;
        // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this is about.
        expect(script).not.toMatch(/[\x00-\x1f\x7f-\x9f]/);
        const { stdout } = spawnSync("bash", ["-c", script], { env: { LC_ALL: "C.UTF-8", PATH: process.env["PATH"] } });
        expect(stdout.toString("utf8").split("\0").slice(0, -1)).toEqual(words);
      }),
      { numRuns: 20 },
    );
  });
});
