import { describe, expect, test } from "vitest";
import { clockAheadMs, inWords, refusalOf, unreachable } from "../../src/github/failure.ts";
import { ProxyFailure } from "../../src/upstream/failure.ts";

const question = { doing: "does not know the App", missing: "Look again." };
const now = Date.parse("2026-01-01T00:00:00Z");

function wrapped(...codes: readonly (string | null)[]): Error {
  return codes.reduceRight<Error>(
    (cause, code) => Object.assign(new Error("x", { cause }), code === null ? {} : { code }),
    new Error("innermost"),
  );
}

describe("how long GitHub wants to be left alone", () => {
  test.each<[string, Readonly<Record<string, string>>, number]>([
    ["it does not say", {}, 1_000],
    ["in seconds", { "retry-after": "90" }, 90_000],
    ["in no time at all", { "retry-after": "0" }, 1_000],
    ["in seconds before the time", { "retry-after": "2", "x-ratelimit-reset": `${now / 1_000 + 50}` }, 2_000],
    ["by the time", { "x-ratelimit-reset": `${now / 1_000 + 50}` }, 50_000],
    ["by a time that is past", { "x-ratelimit-reset": `${now / 1_000 - 50}` }, 1_000],
    [
      "by its own clock's time",
      { "x-ratelimit-reset": `${now / 1_000 + 3_650}`, date: "Thu, 01 Jan 2026 01:00:00 GMT" },
      49_500,
    ],
    ["in a date, which nobody reads", { "retry-after": "Thu, 01 Jan 2026 01:00:00 GMT" }, 1_000],
  ])("%s", (_, headers, retryAfterMs) => {
    expect(refusalOf({ status: 429, headers, message: "" }, question, now)).toMatchObject({
      code: "GITHUB_RATE_LIMITED",
      details: { status: 429, retryAfterMs },
    });
  });
});

describe("403 is a limit", () => {
  test.each<[string, Readonly<Record<string, string>>, string, string]>([
    ["by its words, however they are written", {}, "API RATE LIMIT exceeded", "GITHUB_RATE_LIMITED"],
    ["by what is left", { "x-ratelimit-remaining": "0" }, "", "GITHUB_RATE_LIMITED"],
    ["by the time to wait", { "retry-after": "60" }, "", "GITHUB_RATE_LIMITED"],
  ])("%s", (_, headers, message, code) => {
    expect(refusalOf({ status: 403, headers, message }, question, now).code).toBe(code);
  });

  test("and otherwise a permission", () => {
    const refusal = { status: 403, headers: { "x-ratelimit-remaining": "59" }, message: "Forbidden" };
    expect(refusalOf(refusal, question, now).code).toBe("GITHUB_FORBIDDEN");
  });
});

test("422 without a word of what is wrong is not guessed at", () => {
  const refusal = { status: 422, headers: {}, message: "Validation Failed" };
  expect(refusalOf(refusal, question, now).code).toBe("GITHUB_UNEXPECTED");
});

describe("GitHub cannot be reached", () => {
  test.each<[string, unknown, string]>([
    ["by the innermost reason", wrapped(null, "UND_ERR", "ECONNRESET"), "api.test cannot be reached (ECONNRESET)."],
    [
      "for the first of several",
      new AggregateError([wrapped("EHOSTUNREACH")]),
      "api.test cannot be reached (EHOSTUNREACH).",
    ],
    ["for none of none", new AggregateError([]), "api.test cannot be reached (no reason given)."],
    ["for nothing that can be told", "thrown", "api.test cannot be reached (no reason given)."],
    ["for a number", Object.assign(new Error("x"), { code: 7 }), "api.test cannot be reached (no reason given)."],
    ["in time", wrapped(null, "X", null), "api.test cannot be reached (X)."],
    ["at all", new DOMException("late", "TimeoutError"), "api.test does not answer."],
    ["by name", wrapped("ENOTFOUND"), "api.test is a name that nobody knows (ENOTFOUND)."],
    ["by name for now", wrapped("EAI_AGAIN"), "api.test cannot be looked up (EAI_AGAIN)."],
    [
      "in safety",
      wrapped("SELF_SIGNED_CERT_IN_CHAIN"),
      "api.test has a certificate that is not trusted here (SELF_SIGNED_CERT_IN_CHAIN).",
    ],
  ])("%s", (_, failure, message) => {
    expect(unreachable("api.test", failure)).toMatchObject({ code: "GITHUB_UNAVAILABLE", message });
  });

  test("by a proxy, which is named with the way out", () => {
    const proxy = new ProxyFailure({ shown: "http://proxy.corp:3128", origin: "HTTPS_PROXY" }, "hung up", "Do without");
    expect(unreachable("api.test", new Error("x", { cause: proxy }))).toMatchObject({
      code: "GITHUB_UNAVAILABLE",
      message: "api.test cannot be reached: the proxy http://proxy.corp:3128 (HTTPS_PROXY) hung up.",
      hint: "Is the proxy right? Do without.",
      details: { host: "api.test", reason: "proxy" },
    });
  });

  test("however deep the reason lies", () => {
    const deep = wrapped(...Array.from({ length: 20 }, () => null), "DEEP");
    expect(unreachable("api.test", deep).message).toContain("no reason given");
  });
});

test("clocks are compared where both tell the time", () => {
  expect(clockAheadMs({}, now)).toBeNull();
  expect(clockAheadMs({ date: "soon" }, now)).toBeNull();
  expect(clockAheadMs({ date: "Wed, 31 Dec 2025 23:59:00 GMT" }, now)).toBe(59_500);
});

test.each([
  [1, "1 s"],
  [120_000, "120 s"],
  [120_001, "3 min"],
  [7_200_000, "120 min"],
  [7_201_000, "3 h"],
])("%i ms are %s", (ms, words) => {
  expect(inWords(ms)).toBe(words);
});
