// @module-tag security
import { describe, expect, test } from "vitest";
import { summarizeRefusals } from "../../src/policy/refusals.ts";
import type { Asked } from "../../src/policy/suggest.ts";

function refused(host: string, more: Partial<Asked> = {}): Asked {
  return { kind: "tls", verdict: "refused", host, port: 443, reason: "host", ...more };
}

describe("refusals in a few lines", () => {
  test("are none where nothing was refused", () => {
    const others: Asked[] = [
      refused("a.example.com", { verdict: "allowed" }),
      refused("a.example.com", { verdict: "failed" }),
      refused("a.example.com", { kind: "dns" }),
    ];
    expect(summarizeRefusals(others)).toEqual([]);
  });

  test("name each place once, the most frequent first, with what would allow it and nothing else", () => {
    const entries = [
      refused("db.example.com", { kind: "tcp", port: 5432 }),
      refused("API.example.com", { kind: "http", path: "/a", method: "GET" }),
      refused("api.example.com", { kind: "http", path: "/b", method: "GET", port: 80, reason: "path" }),
      refused("2001:db8::1", { kind: "tcp", port: 22 }),
      refused("www.example.com", { kind: "http", path: "/a", method: "PUT", reason: "method" }),
      refused("www.example.com", { kind: "http", path: "/a", method: "PUT", reason: "method" }),
    ];
    expect(summarizeRefusals(entries)).toEqual([
      "Refused twice: api.example.com; `podbot policy suggest` shows the rule that would allow it.",
      "Refused twice: www.example.com; `podbot policy suggest` shows the rule that would allow it.",
      "Refused once: db.example.com:5432; --allow db.example.com:5432 would allow it.",
      "Refused once: [2001:db8::1]:22; no flag is offered for that.",
    ]);
  });

  test("say where no flag would help", () => {
    const entries = [
      refused("a.example.com", { reason: "denied" }),
      refused("b.example.com", { reason: "address" }),
      refused("c.example.com", { reason: "protocol" }),
      { kind: "tcp", verdict: "refused", host: "d.example.com", port: 443 } as const,
      refused("e\n\u001b.example.com"),
    ];
    expect(summarizeRefusals(entries)).toEqual([
      "Refused once: a.example.com; a rule denies it.",
      "Refused once: b.example.com; it leads to a private address, which only a rule with local = true allows.",
      "Refused once: c.example.com; no flag is offered for that.",
      "Refused once: d.example.com; no flag is offered for that.",
      'Refused once: "e\\n\\u001b.example.com:443"; no flag is offered for that.',
    ]);
  });

  test("are few, however many there were", () => {
    const entries = Array.from({ length: 10_000 }, (_, at) => refused(`h${at % 100}.example.com`));
    const lines = summarizeRefusals(entries);
    expect(lines.length).toBe(6);
    expect(lines[0]).toMatch(/^Refused 100 times: /);
    expect(lines.at(-1)).toBe("Refused as well: 95 more. `podbot audit` shows all.");
  });
});
