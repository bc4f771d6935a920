// @module-tag security
import { describe, expect, test } from "vitest";
import { Inspector } from "../../src/bridge/inspector.ts";
import type { BridgePolicy } from "../../src/bridge/policy.ts";
import { acpPolicy, codexPolicy } from "./inspect.ts";

/** Numbers that look like chance and are the same each time (xorshift). */
function chance(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

const blockedMethods = ["fs/read_text_file", "fs/write_text_file", "terminal/create", "mcp/message", "proxy/successor"];
const codexBlocked = ["item/tool/call", "attestation/generate"];
const harmlessMethods = [
  "session/update",
  "session/request_permission",
  "$/cancel_request",
  "_x/y",
  "currentTime/read",
];
const texts = [
  '""',
  '"a"',
  '"ü\u{2028}x"',
  '"\\n\\"\\\\"',
  '"fs/read_text_file"',
  '"{\\"method\\":\\"fs/x\\"}"',
  '"\\ud800"',
  // Cut down to their lower byte, these are quotes, colons, commas, braces and line ends.
  '"ĢĺĬŻŽ"',
  '"ĢĬĢmethodĢĺĢfs/read_text_fileĢ"',
  '"Ċ"',
  '"登录\\u0122"',
];
const scalars = ["0", "1", "-1", "1.0", "1e2", "true", "null", "12345678901234567890", ...texts];
const names = [
  "jsonrpc",
  "id",
  "method",
  "params",
  "result",
  "error",
  "Method",
  "\\u006dethod",
  "METHOD",
  "trace",
  "x",
  "__proto__",
  "ĢĬĢmethodĢĺĢfs/xĢ",
  "ｍethod",
  "m\u{435}thod",
  "method ",
  "登录",
];
/** Of these, what each protocol lets an agent ask for. */
const harmlessRequests = { acp: ["session/request_permission", "_x/y"], codex_app_server: ["currentTime/read"] };
/** What readers differ about, and what a careless writer would leave in. */
const splinters = [
  "\r",
  "\0",
  "\u{feff}",
  "\u{2028}",
  "\x85",
  "\t",
  " ",
  ",",
  "}",
  "{",
  '"',
  "\\",
  "//",
  "/**/",
  "'",
  "[",
  "]",
  "NaN",
  "\x0b",
];

/** A line that a hostile agent might write: nearly a message, and often one. */
function makeLine(pick: (below: number) => number, methods: readonly string[]): string {
  const from = (list: readonly string[]): string => list[pick(list.length)] as string;
  const method = (): string => {
    const name = pick(2) === 0 ? from(methods) : from(harmlessMethods);
    const kind = pick(12);
    if (kind === 0) return name.replace("/", "\\/");
    if (kind === 1) return `\\u00${name.charCodeAt(0).toString(16)}${name.slice(1)}`;
    if (kind === 2) return name.toUpperCase();
    if (kind === 3) return ` ${name}`;
    return name;
  };
  const value = (depth: number): string => {
    const kind = pick(depth > 2 ? 2 : 5);
    if (kind < 2) return from(scalars);
    const count = pick(4);
    if (kind === 2) return `[${Array.from({ length: count }, () => value(depth + 1)).join(",")}]`;
    return `{${Array.from({ length: count }, () => `"${from(names)}":${value(depth + 1)}`).join(",")}}`;
  };
  const member = (name: string): string => {
    if (name === "jsonrpc") return `"jsonrpc":${pick(20) === 0 ? from(scalars) : '"2.0"'}`;
    if (name === "id") return `"id":${pick(4) === 0 ? from(scalars) : pick(100)}`;
    if (name.toLowerCase().endsWith("ethod")) return `"${name}":${pick(20) === 0 ? value(1) : `"${method()}"`}`;
    return `"${name}":${value(1)}`;
  };
  const members = ["jsonrpc", ...(pick(3) === 0 ? [] : ["id"]), ...(pick(4) === 0 ? ["result"] : ["method", "params"])];
  for (let extra = pick(5) === 0 ? pick(3) : 0; extra > 0; extra -= 1)
    members.splice(pick(members.length + 1), 0, from(names));
  let line = `{${members.map(member).join(pick(10) === 0 ? " , " : ",")}}`;
  for (let damage = pick(4) === 0 ? 1 + pick(2) : 0; damage > 0; damage -= 1) {
    const at = pick(line.length + 1);
    const kind = pick(4);
    if (kind === 0) line = line.slice(0, at) + from(splinters) + line.slice(at);
    else if (kind === 1) line = line.slice(0, at) + line.slice(at + 1 + pick(3));
    else if (kind === 2) line = `${line}${from(splinters)}${line.slice(at)}`;
    else line = `[${line}]`;
  }
  return line.replaceAll("\n", " ");
}

/** All that some reader takes for the end of a line. */
const lineEnds = new RegExp(`[${["\\r", "\\v", "\\f", "\\x1c-\\x1e", "\\x85", "\\u2028", "\\u2029"].join("")}]`);

/** How readers come to the methods of a line; each of them is the reader of some client. */
const readers: readonly ((line: string) => unknown[])[] = [
  // By the book: one value in a line, the last of equal names.
  (line) => methodsOf(parse(line)),
  // A reader that splits lines wherever any reader does.
  (line) => (lineEnds.test(line) ? line.split(lineEnds).flatMap((part) => methodsOf(parse(part))) : []),
  // One that takes batches, and one that drops what comes before and after an object.
  (line) => methodsOf(parse(/\{.*\}/s.exec(line)?.[0] ?? "")),
  // One that takes the first of equal names, by reading no further than it must.
  (line) =>
    [
      ...line.matchAll(
        /^[\s\ufeff[]*\{(?:\s*"[^"\\]*"\s*:\s*(?:"(?:[^"\\]|\\.)*"|[\w.+-]+)\s*,)*\s*"method"\s*:\s*("(?:[^"\\]|\\.)*")/gi,
      ),
    ].map(([, method]) => parse(method as string)),
];

function parse(text: string): unknown {
  try {
    return JSON.parse(text.replace(/^\ufeff/, ""));
  } catch {
    return undefined;
  }
}

/** Names in any case; batches as well. */
function methodsOf(value: unknown): unknown[] {
  if (Array.isArray(value)) return value.flatMap(methodsOf);
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, part]) => (name.toLowerCase() === "method" ? [part] : []));
}

function isBlocked(method: unknown, methods: readonly string[]): boolean {
  return typeof method === "string" && methods.includes(method.trim().toLowerCase());
}

/** An honest line, by a reading that has nothing in common with the scanner: it must pass. */
function isHonest(line: string, policy: BridgePolicy, blocked: readonly string[]): boolean {
  const value = parse(line);
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const message = value as Record<string, unknown>;
  // As its own writer would spell it: then no name is there twice, and nothing is spelled oddly.
  if (JSON.stringify(value) !== line) return false;
  const known = ["jsonrpc", "id", "method", "params", "result", "error"];
  if (Object.keys(message).some((name) => !known.includes(name))) return false;
  if (message["jsonrpc"] !== "2.0" && !(policy.protocol !== "acp" && message["jsonrpc"] === undefined)) return false;
  if (
    "id" in message &&
    message["id"] !== null &&
    typeof message["id"] !== "string" &&
    !Number.isSafeInteger(message["id"])
  )
    return false;
  if (!("method" in message)) return "id" in message && ("result" in message || "error" in message);
  const { method } = message;
  if ("result" in message || "error" in message || typeof method !== "string" || !harmlessMethods.includes(method))
    return false;
  return (!("id" in message) || harmlessRequests[policy.protocol].includes(method)) && !isBlocked(method, blocked);
}

describe("half a million lines of a hostile agent, for each protocol,", () => {
  test.each([
    ["acp", acpPolicy, blockedMethods, 0x5eed],
    ["codex", codexPolicy, codexBlocked, 0xc0dec],
  ] as const)(
    "never carry a blocked method to any reader, and honest lines stay as they are: %s",
    { timeout: 120_000 },
    (_name, policy, blocked, seed) => {
      const pick = chance(seed);
      const inspector = new Inspector("to-client", policy, () => {});
      const count = { lines: 0, passed: 0, honest: 0, tempting: 0 };
      for (let round = 0; round < 5000; round += 1) {
        const lines = Array.from({ length: 100 }, () => makeLine(pick, blocked));
        const input = Buffer.from(lines.map((line) => `${line}\n`).join(""));
        // Cut anywhere: what is a line does not depend on how it arrives.
        const cut = pick(input.length);
        const pieces = [
          ...inspector.push(input.subarray(0, cut)).pieces,
          ...inspector.push(input.subarray(cut)).pieces,
        ];
        const out = Buffer.concat(pieces).toString().split("\n");
        expect(out.pop()).toBe("");
        count.lines += lines.length;
        count.passed += out.length;
        let at = 0;
        for (const line of lines) {
          const passes = out[at] === line;
          if (passes) at += 1;
          // What went nowhere is looked at now and then, to see that it was worth holding back.
          if (passes || pick(16) === 0) {
            const isTempting = readers.some((read) => read(line).some((method) => isBlocked(method, blocked)));
            if (isTempting) count.tempting += 1;
            if (passes && isTempting) expect.unreachable(`it passed: ${line}`);
          }
          if ((!passes || pick(16) === 0) && isHonest(line, policy, blocked)) {
            count.honest += 1;
            if (!passes) expect.unreachable(`it was held back: ${line}`);
          }
        }
        // All that came out is what went in, in order.
        if (at !== out.length) expect.unreachable(`it came out changed: ${out[at]}`);
      }
      // The lines are worth their while: many of each kind.
      expect(count.lines).toBe(500_000);
      for (const number of [count.passed, count.honest, count.tempting]) expect(number).toBeGreaterThan(2000);
    },
  );
});
