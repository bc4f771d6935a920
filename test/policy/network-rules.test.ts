import { describe, expect, test } from "vitest";
import { PolicyError } from "../../src/errors.ts";
import { readBinding, readDomain, readReach, readRule, type WrittenRule } from "../../src/policy/network-rules.ts";
import { failure } from "../failure.ts";

describe("a domain", () => {
  test.each([
    ["API.example.org", { host: "api.example.org", ports: [80, 443], local: false }],
    ["*.example.org:8443", { host: "*.example.org", ports: [8443], local: false }],
    ["10.0.0.7:5432", { host: "10.0.0.7", ports: [5432], local: true }],
    ["[::1]:5432", { host: "::1", ports: [5432], local: true }],
    ["::1", { host: "::1", ports: [80, 443], local: true }],
  ])("%s is a rule", (written, rule) => {
    expect(readDomain(written, "me")).toEqual({ ...rule, paths: null, methods: null, deny: false, origin: "me" });
  });

  test.each([
    ["x.org:0", 'me: "x.org:0" names a port that there is not.', "Use one from 1 to 65535."],
    ["https://x.org", 'me: "https://x.org" is not a host.', "Did you mean x.org?"],
    ["x.org:http", 'me: "x.org:http" is not a host.', "Write a name such as api.example.org."],
    ["*x.org:80", 'me: "*x.org:80" is a name that anybody could register.', expect.stringContaining("*.example.org")],
  ])("%s is refused", (written, message, hint) => {
    expect(failure(PolicyError, () => readDomain(written, "me"))).toMatchObject({
      code: "NETWORK_RULE_INVALID",
      message,
      hint,
    });
  });
});

describe("a rule", () => {
  test.each<[WrittenRule, object]>([
    [{ host: "X.org" }, { host: "x.org", ports: [80, 443], paths: null, methods: null, deny: false, local: false }],
    [{ host: "x.org", port: 22 }, { ports: [22] }],
    [{ host: "x.org", ports: [22, 23] }, { ports: [22, 23] }],
    [{ host: "x.org", path: "/a" }, { paths: ["/a"] }],
    [{ host: "x.org", paths: ["/a", "/b/**"] }, { paths: ["/a", "/b/**"] }],
    [{ host: "x.org", methods: ["get", "POST"] }, { methods: ["GET", "POST"] }],
    [
      { host: "x.org", deny: true },
      { deny: true, local: false, ports: [] },
    ],
    [
      { host: "x.org", port: 443, deny: true },
      { deny: true, ports: [443] },
    ],
    [{ host: "127.0.0.1", local: false }, { local: false }],
  ])("%j is read", (written, rule) => {
    expect(readRule(written, "me")).toMatchObject({ ...rule, origin: "me" });
  });

  test.each<[WrittenRule, string]>([
    [{ host: "x org" }, 'me: "x org" is not a host.'],
    [{ host: "x.org", path: "a" }, 'me: "a" does not begin with /.'],
    [{ host: "x.org", paths: ["/a", "/../b"] }, 'me: "/../b" is spelled in a way that no request may be.'],
    [{ host: "x.org", methods: ["G ET"] }, 'me: "G ET" is not a method of HTTP.'],
    [{ host: "x.org", methods: ["connect"] }, 'me: "connect" asks for a tunnel, which no rule is about.'],
    [{ host: "x.org", path: "/a?b" }, 'me: "/a?b" is spelled in a way that no request may be.'],
    [{ host: "x.org", path: "/a#b" }, 'me: "/a#b" is spelled in a way that no request may be.'],
    [{ host: "x.org", deny: true, local: true }, 'me: "x.org" denies, so local means nothing.'],
  ])("that can never hold is refused: %j", (written, message) => {
    expect(failure(PolicyError, () => readRule(written, "me"))).toMatchObject({
      code: "NETWORK_RULE_INVALID",
      message,
    });
  });
});

describe("a secret", () => {
  test("without hosts is not put in anywhere", () => {
    expect(readBinding("T", {})).toBeNull();
  });

  test("goes to its hosts, in the usual headers unless others are named", () => {
    const headers = ["authorization", "x-api-key"];
    expect(readBinding("T", { hosts: ["API.x.org"] })).toEqual({
      name: "T",
      hosts: ["api.x.org"],
      headers,
      paths: null,
    });
    expect(readBinding("T", { hosts: ["*.x.org"], headers: ["X-Token"], paths: ["/v1/**"] })).toEqual({
      name: "T",
      hosts: ["*.x.org"],
      headers: ["x-token"],
      paths: ["/v1/**"],
    });
  });

  test.each([
    [{ hosts: ["**"] }, 'secrets.T: "**" would send it to everybody.'],
    [{ hosts: ["x.org:443"] }, 'secrets.T: "x.org:443" is not a host.'],
    [{ hosts: ["x.org"], headers: ["a b"] }, 'secrets.T: "a b" is not a header that can hold a secret.'],
    [{ hosts: ["x.org"], headers: ["Host"] }, 'secrets.T: "Host" is not a header that can hold a secret.'],
    [{ hosts: ["x.org"], paths: ["v1"] }, 'secrets.T: "v1" does not begin with /.'],
  ])("is refused: %j", (secret, message) => {
    expect(failure(PolicyError, () => readBinding("T", secret))).toMatchObject({
      code: "NETWORK_RULE_INVALID",
      message,
    });
  });
});

describe("where a name leads", () => {
  test("is an address, with a port or without", () => {
    const reach = { DB: "127.0.0.1:5432", web: "127.0.0.1", six: "::1", "six.x.org": "[::1]:80", ["__proto__"]: "::1" };
    expect(Object.entries(readReach(reach))).toEqual([
      ["db", "127.0.0.1:5432"],
      ["web", "127.0.0.1"],
      ["six", "::1"],
      ["six.x.org", "[::1]:80"],
      ["__proto__", "::1"],
    ]);
  });

  test.each([
    [{ db: "localhost" }, 'network.reach: "localhost" is not an address.'],
    [{ db: "127.1" }, 'network.reach: "127.1" is not an address.'],
    [{ db: "127.0.0.1:0" }, 'network.reach: "127.0.0.1:0" is not an address.'],
    [{ "*.x.org": "127.0.0.1" }, 'network.reach: "*.x.org" is not a name.'],
    [{ "10.0.0.1": "127.0.0.1" }, 'network.reach: "10.0.0.1" is not a name.'],
  ])("is refused: %j", (reach, message) => {
    expect(failure(PolicyError, () => readReach(reach))).toMatchObject({ code: "NETWORK_RULE_INVALID", message });
  });
});
