import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { canonicalHost, isAddress, matchesHost, readHostPattern, splitPort } from "../../src/policy/hosts.ts";

const label = fc.stringMatching(/^[a-z0-9](?:[a-z0-9_-]{0,6}[a-z0-9])?$/);
const name = fc
  .tuple(fc.array(label, { maxLength: 4 }), fc.constantFrom("org", "example", "x1"))
  .map(([labels, last]) => [...labels, last].join("."));

describe("the one spelling of a host", () => {
  test.each([
    ["api.example.org", "api.example.org"],
    ["API.Example.ORG", "api.example.org"],
    ["localhost", "localhost"],
    ["_dmarc.x.org", "_dmarc.x.org"],
    ["xn--bcher-kva.example", "xn--bcher-kva.example"],
    ["127.0.0.1", "127.0.0.1"],
    ["255.249.199.0", "255.249.199.0"],
    ["::1", "::1"],
    ["2001:DB8::1", "2001:db8::1"],
    ["1.2.3.4.org", "1.2.3.4.org"],
    ["0x7f.org", "0x7f.org"],
  ])("of %s is %s", (written, host) => {
    expect(canonicalHost(written)).toBe(host);
  });

  test.each([
    "",
    ".",
    "x.org.",
    ".x.org",
    "a..org",
    "-a.org",
    "a-.org",
    "a b.org",
    "a\0.org",
    "a/b",
    "a:80",
    "user@x.org",
    "[::1]",
    "bücher.example",
    "x。org",
    "ｘ.org",
    "x\u0130.org",
    // addresses, as some read them
    "0x7f.1",
    "0x7f000001",
    "0x",
    "127.1",
    "127.0.1",
    "2130706433",
    "0177.0.0.1",
    "127.0.0.01",
    "127.0.0.256",
    "127.0.0.1.",
    "1.2.3.4.5",
    "x.0x7f",
    "x.1",
    "0:0:0:0:0:0:0:1",
    "::0001",
    "fe80::1%eth0",
    "fe80::1%25eth0",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "1::2::3",
    ":",
    "::1]@x.org[",
    `${"a".repeat(64)}.org`,
    `${"a.".repeat(126)}ab`,
  ])("does not exist for %j", (written) => {
    expect(canonicalHost(written)).toBeNull();
  });

  test("is its own", () => {
    fc.assert(
      fc.property(fc.oneof(name, fc.ipV4(), fc.string(), fc.domain(), fc.ipV6()), (written) => {
        const host = canonicalHost(written);
        if (host === null) return;
        expect(canonicalHost(host)).toBe(host);
        expect(host).toBe(written.toLowerCase());
      }),
    );
  });

  test("is what everybody who reads addresses takes it for", () => {
    fc.assert(
      fc.property(fc.oneof(name, fc.ipV4(), fc.ipV4Extended(), fc.domain()), (written) => {
        const host = canonicalHost(written);
        if (host !== null) expect(new URL(`http://${host}/`).hostname).toBe(host);
      }),
    );
  });

  test("exists for every plain address and name", () => {
    fc.assert(
      fc.property(fc.oneof(name, fc.ipV4()), (written) => {
        expect(canonicalHost(written)).toBe(written);
      }),
    );
  });
});

test("an address is told from a name", () => {
  expect(["127.0.0.1", "::1", "2001:db8::1"].map(isAddress)).toEqual([true, true, true]);
  expect(["localhost", "1.2.3.4.org", "x.org"].map(isAddress)).toEqual([false, false, false]);
});

describe("a host as its owner writes it", () => {
  test.each([
    ["API.example.org", "api.example.org"],
    ["*.Example.org", "*.example.org"],
    ["**.example.org", "**.example.org"],
    ["api.*.example.org", "api.*.example.org"],
    ["a.**.example.org", "a.**.example.org"],
    ["api-*.example.org", "api-*.example.org"],
    ["*.corp", "*.corp"],
    ["**", "**"],
    ["10.0.0.1", "10.0.0.1"],
    ["::1", "::1"],
  ])("%s is %s", (written, host) => {
    expect(readHostPattern(written)).toEqual({ kind: "host", host });
  });

  test.each([
    ["https://x.org/path", "is not a host", "did you mean x.org?"],
    ["bücher.example", "is not a host", "did you mean xn--bcher-kva.example?"],
    ["x.org.", "is not a host", "did you mean x.org?"],
    ["127.1", "is not a host", "did you mean 127.0.0.1?"],
    ["[::1]", "is not a host", "did you mean ::1?"],
    ["a b", "is not a host", "write a name such as api.example.org"],
    ["", "is not a host", "write a name such as api.example.org"],
    ["http://a_b-.org", "is not a host", "write a name such as api.example.org"],
    ["*", "leaves its end open", 'write the end out, or "**" for every name'],
    ["api.*", "leaves its end open", 'write the end out, or "**" for every name'],
    ["x.**", "leaves its end open", 'write the end out, or "**" for every name'],
    ["**.a.**.org", "has ** twice", "keep one of them"],
    ["*example.org", "is a name that anybody could register", 'write "*.example.org" for what lies below example.org'],
    ["*.0.0.1", "is not a pattern of hosts", 'write "*.example.org", or "**.example.org" for any depth'],
    ["a**b.example.org", "is not a pattern of hosts", 'write "*.example.org", or "**.example.org" for any depth'],
    ["*.bücher.example", "is not a pattern of hosts", 'write "*.example.org", or "**.example.org" for any depth'],
    ["*..org", "is not a pattern of hosts", 'write "*.example.org", or "**.example.org" for any depth'],
  ])("%j %s; %s", (written, wrong, wayOut) => {
    expect(readHostPattern(written)).toEqual({ kind: "wrong", wrong, wayOut });
  });
});

describe("a pattern stands for", () => {
  test.each([
    ["x.org", ["x.org"], ["a.x.org", "xx.org", "x.org.evil.example"]],
    ["*.x.org", ["a.x.org"], ["x.org", "a.b.x.org", "evilx.org", "a.x.org.evil.example"]],
    ["**.x.org", ["a.x.org", "a.b.c.x.org"], ["x.org", "evilx.org", "a.evilx.org"]],
    ["api-*.x.org", ["api-.x.org", "api-1.x.org"], ["api.x.org", "api-1.a.x.org", "api-1.evil.x.org"]],
    ["a*b*c.x.org", ["abc.x.org", "a1b2c.x.org", "abbcc.x.org"], ["ab.x.org", "ac.x.org", "abcx.x.org", "cba.x.org"]],
    ["a*ba.x.org", ["aba.x.org", "abba.x.org"], ["ba.x.org", "a.x.org"]],
    ["a.**.x.org", ["a.b.x.org", "a.b.c.x.org"], ["a.x.org", "b.a.x.org"]],
    ["**", ["x.org", "localhost"], ["127.0.0.1", "::1"]],
    ["127.0.0.1", ["127.0.0.1"], ["127.0.0.11"]],
  ])("%s: %j, and not %j", (pattern, those, others) => {
    for (const host of those) expect([host, matchesHost(pattern, host)]).toEqual([host, true]);
    for (const host of others) expect([host, matchesHost(pattern, host)]).toEqual([host, false]);
  });

  test("nothing but names below its end, whatever stands before", () => {
    fc.assert(
      fc.property(name, fc.constantFrom("*.x.org", "**.x.org", "a*.x.org"), (host, pattern) => {
        if (matchesHost(pattern, host)) expect(host.endsWith(".x.org")).toBe(true);
        expect(matchesHost(pattern, `${host}.evil.example`)).toBe(false);
      }),
    );
  });

  test("as many labels as it has, where ** is not among them", () => {
    fc.assert(
      fc.property(name, (host) => {
        expect(matchesHost("**.org", `${host}.org`)).toBe(true);
        expect(matchesHost("*.org", `${host}.org`)).toBe(!host.includes("."));
      }),
    );
  });
});

describe("a port is split off", () => {
  test.each([
    ["x.org", { host: "x.org", port: null }],
    ["x.org:8443", { host: "x.org", port: 8443 }],
    ["[::1]:5432", { host: "::1", port: 5432 }],
    ["[::1]", { host: "::1", port: null }],
    ["::1", { host: "::1", port: null }],
    ["2001:db8::1:80", { host: "2001:db8::1:80", port: null }],
    ["[x.org]:80", { host: "[x.org]", port: 80 }],
    ["x.org:", { host: "x.org:", port: null }],
    ["x.org:http", { host: "x.org:http", port: null }],
    ["x.org:0", null],
    ["x.org:080", null],
    ["x.org:65536", null],
  ])("from %s", (written, parts) => {
    expect(splitPort(written)).toEqual(parts);
  });
});
