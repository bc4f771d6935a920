import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { parseArguments } from "../../src/cli/parse.ts";
import { commands } from "../../src/cli/table.ts";
import * as library from "../../src/index.ts";
import { presetNames } from "../../src/policy/presets.ts";
import type { SessionState } from "../../src/registry/reconcile.ts";
import { type Page, pageAt, readBlocks, readPages, root, rowsBetween } from "./pages.ts";

const pages = readPages();
const byPath = pages.map((page) => [page.path, page] as const);

/** Prose and code spans, without fenced blocks. */
function proseOf({ text }: Page): string {
  return text.replace(/^```.*?^```$/gms, "");
}

/** As the forge makes them of headings. */
function anchorsOf({ text }: Page): readonly string[] {
  return [...proseOf({ path: "", text }).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

describe("links lead somewhere", () => {
  test.each(byPath)("%s", (path, page) => {
    for (const [, target = ""] of proseOf(page).matchAll(/\]\(([^\s)]+)(?: "[^"]*")?\)/g)) {
      if (/^https:/.test(target)) continue;
      const [file = "", anchor] = target.split("#");
      const resolved = file === "" ? path : join(dirname(path), file);
      expect(existsSync(join(root, resolved)), target).toBe(true);
      if (anchor !== undefined) expect(anchorsOf(pageAt(resolved)), target).toContain(anchor);
    }
  });
});

test("generated parts are what the source gives", async () => {
  const check = promisify(execFile)(process.execPath, [join(root, "scripts/docs.mjs"), "--check"]);
  await expect(check).resolves.toEqual({ stdout: "", stderr: "" });
});

describe("every `podbot …` has a command and flags that exist", () => {
  test.each(byPath)("%s", (path, page) => {
    const spans = [...proseOf(page).matchAll(/`(podbot [^`]+)`/g)].map(([, span = ""]) => span);
    const lines = readBlocks("sh")
      .filter(({ place }) => place.startsWith(`${path}:`))
      .flatMap((block) => block.lines)
      .flatMap((line) => /^(?:\$ )?(podbot .+)$/.exec(line)?.[1] ?? []);
    for (const call of [...spans, ...lines]) expectUnderstood(call);
  });
});

test("the unit for systemd in docs/sessions.md starts what exists", () => {
  const lines = readBlocks("ini").flatMap((block) => block.lines);
  const calls = lines.flatMap((line) => /^ExecStart=%h\/\.local\/bin\/(podbot .+)$/.exec(line)?.[1] ?? []);
  expect(calls.length).toBe(1);
  for (const call of calls) expectUnderstood(call);
});

function expectUnderstood(call: string): void {
  const [, name = "", ...words] = call.replace(/ +(?:&&|\||2?>|<|#) ?.*$/, "").split(/ +/);
  if (/^(-|COMMAND|demo$|…)/.test(name) || /[[…]/.test(words.join())) return;
  const command = commands.find((candidate) => candidate.name === name);
  if (command === undefined) throw new Error(`there is no command ${name}: ${call}`);
  // Alone it is the name of the command, not a call of it.
  if (words.length === 0) return;
  expect(() => parseArguments(command, words), call).not.toThrow();
}

test("README.md fits on a screen", () => {
  expect(pageAt("README.md").text.split("\n").length - 1).toBeLessThanOrEqual(60);
});

test("decisions are numbered without gaps and are short", () => {
  const names = readdirSync(join(root, "docs/adr")).sort();
  expect(names.map((name) => Number(name.slice(0, 4)))).toEqual(names.map((_, at) => at + 1));
  for (const name of names) expect(pageAt(`docs/adr/${name}`).text.split("\n").length - 1).toBeLessThanOrEqual(40);
});

test("docs/architecture.md names every room", () => {
  const folders = readdirSync(join(root, "src"), { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const { text } = pageAt("docs/architecture.md");
  for (const { name } of folders) expect(text).toContain(`\n| \`${name}\` |`);
});

test("docs/policy.md names every preset", () => {
  const { text } = pageAt("docs/policy.md");
  for (const name of presetNames) expect(text).toContain(`\n| \`${name}\` |`);
});

test("docs/library.md names everything that the library exports", () => {
  const { text } = pageAt("docs/library.md");
  expect(Object.keys(library).filter((name) => !new RegExp(`\`${name}\\b`).test(text))).toEqual([]);
});

test("docs/security-model.md speaks of every promise, in order", () => {
  const rows = rowsBetween(pageAt("docs/security-model.md"), "items", "end of items");
  const numbers = rows.flatMap(([item = ""]) => {
    const [first = 0, last = first] = item.split("–").map(Number);
    return Array.from({ length: last - first + 1 }, (_, at) => first + at);
  });
  const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => from + at);
  expect([...new Set(numbers)]).toEqual([...range(1, 49), 51, ...range(62, 68)]);
  for (const [item, , kind] of rows) expect(["B", "D", "–"], item).toContain(kind);
});

test("docs/security-model.md says of every promise about sessions what it is, and proves it", () => {
  const rows = rowsBetween(pageAt("docs/security-model.md"), "sessions", "end of sessions");
  expect(rows.length).toBeGreaterThan(0);
  for (const [promise, kind, proof] of rows) {
    expect(["B", "D", "–"], promise).toContain(kind);
    expect(proof, promise).toMatch(/\]\(/);
  }
});

test("docs/security-model.md says of every way around another sandbox what becomes of it, and names tests that exist", () => {
  const rows = rowsBetween(pageAt("docs/security-model.md"), "bypasses", "end of bypasses");
  expect(rows.length).toBe(32);
  const cited = (proof: string) => [...proof.matchAll(/\]\(\.\.\/(test\/[^\s)]+)(?: "([^"]*)")?\)/g)];
  for (const [where = "", how = "", state = "", proof = ""] of rows) {
    expect(["held", "in part", "not held"], where).toContain(state);
    expect(Math.min(where.length, how.length), where).toBeGreaterThan(0);
    // A link proves what is held; of what is not, the words say what to do.
    if (state !== "not held") expect(cited(proof), where).not.toEqual([]);
    if (state !== "held") expect(proof.replaceAll(/\]\([^)]*\)/g, "").length, where).toBeGreaterThan(80);
    for (const [, file = "", title = ""] of cited(proof)) {
      expect(title, `${where}: ${file}`).not.toBe("");
      expect(readFileSync(join(root, file), "utf8"), `${where}: ${file}`).toContain(`"${title}"`);
    }
  }
});

/** Complete by its type. */
const states: Readonly<Record<SessionState, true>> = {
  ending: true,
  starting: true,
  prepared: true,
  running: true,
  suspended: true,
  unreachable: true,
  ended: true,
  died: true,
  stray: true,
};

test("docs/sessions.md explains every state that ps can show", () => {
  const { text } = pageAt("docs/sessions.md");
  const explained = [...text.matchAll(/^\| ([a-z]+)(?: \(N\))? \| /gm)].map(([, state]) => state);
  expect(explained).toEqual(expect.arrayContaining(Object.keys(states)));
});

test("the pages speak of the project alone", () => {
  for (const { path, text } of pages) expect(text, path).not.toMatch(/\/work\/(main|shared)|registry\.npmjs/);
});
