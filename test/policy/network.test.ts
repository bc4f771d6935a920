// @module-tag security
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type Destination,
  deniedHosts,
  doorPorts,
  type HttpRequest,
  isByRequest,
  judgeConnection,
  judgeRequest,
  judgesPaths,
  type NetworkPolicy,
  type NetworkRule,
  namedBy,
  needsInspection,
} from "../../src/policy/network.ts";
import { readDomain, readRule, type WrittenRule } from "../../src/policy/network-rules.ts";

/** A policy of rules as their owner writes them; a text is a domain. */
function policy(rules: readonly (string | WrittenRule)[], more: Partial<NetworkPolicy> = {}): NetworkPolicy {
  return {
    learn: false,
    rules: rules.map((rule, at): NetworkRule => {
      return typeof rule === "string" ? readDomain(rule, `domain ${at}`) : readRule(rule, `rule ${at}`);
    }),
    secrets: [],
    reach: {},
    ...more,
  };
}

const to = (place: string): Destination => {
  const [, host = "", port] = /^(.*?)(?::(\d+))?$/.exec(place) ?? [];
  return { host, port: Number(port ?? 443) };
};

/** `allow`, `inspect`, or why not. */
function connect(rules: NetworkPolicy, place: string): string {
  const verdict = judgeConnection(rules, to(place));
  return verdict.kind === "deny" ? verdict.code : verdict.kind;
}

/** `GET x.org:8080/path` */
function request(line: string): HttpRequest {
  const [method = "", place = "", path = ""] = /^(\S+) ([^/]+)(\/.*)$/.exec(line)?.slice(1) ?? [];
  return { ...to(place), method, path };
}

function ask(rules: NetworkPolicy, line: string): string {
  const verdict = judgeRequest(rules, request(line));
  return verdict.kind === "deny" ? verdict.code : verdict.kind;
}

describe("a connection", () => {
  test("goes nowhere without rules", () => {
    expect(connect(policy([]), "x.org")).toBe("host");
    expect(ask(policy([]), "GET x.org/")).toBe("host");
  });

  test("goes to a host that is named, at its ports, however the host is written", () => {
    const rules = policy(["x.org", "db.x.org:5432"]);
    expect(connect(rules, "x.org")).toBe("allow");
    expect(connect(rules, "X.ORG:80")).toBe("allow");
    expect(connect(rules, "x.org:8080")).toBe("port");
    expect(connect(rules, "db.x.org:5432")).toBe("allow");
    expect(connect(rules, "db.x.org")).toBe("port");
    expect(connect(rules, "y.org")).toBe("host");
  });

  test("goes to what a glob stands for, and to no address by it", () => {
    const rules = policy(["*.x.org", "**"]);
    expect(connect(policy(["*.x.org"]), "x.org")).toBe("host");
    expect(connect(policy(["*.x.org"]), "a.x.org")).toBe("allow");
    expect(connect(policy(["*.x.org"]), "evilx.org")).toBe("host");
    expect(connect(rules, "127.0.0.1")).toBe("host");
    expect(connect(policy(["127.0.0.1"]), "127.0.0.1")).toBe("allow");
  });

  test.each(["x.org.", "0x7f.1", "127.1", "2130706433", "x..org", "xé.org", ""])("to %j is refused unread", (host) => {
    const rules = policy(["**", "x.org", "127.0.0.1"], { learn: true });
    expect(judgeConnection(rules, { host, port: 443 })).toMatchObject({ kind: "deny", code: "spelling" });
    expect(judgeRequest(rules, { host, port: 443, method: "GET", path: "/" })).toMatchObject({ code: "spelling" });
    expect(needsInspection(rules, { host, port: 443 })).toBe(false);
  });

  test("is denied where a rule denies all of it, whoever allows it", () => {
    const rules = policy(["**.x.org", { host: "a.x.org", deny: true }, { host: "b.x.org", port: 443, deny: true }]);
    expect(connect(policy(["x.org:5432", { host: "x.org", deny: true }]), "x.org:5432")).toBe("denied");
    expect(connect(policy([{ host: "x.org", deny: true }], { learn: true }), "x.org:9999")).toBe("denied");
    expect(judgeConnection(rules, to("a.x.org"))).toMatchObject({ code: "denied", rule: { origin: "rule 1" } });
    expect(connect(rules, "b.x.org")).toBe("denied");
    expect(connect(rules, "b.x.org:80")).toBe("allow");
    expect(connect(policy([{ host: "a.x.org", port: 2, deny: true }]), "a.x.org:1")).toBe("host");
  });

  test("is looked into where path or method decide", () => {
    const some = policy([{ host: "x.org", path: "/v1/**" }]);
    expect(connect(some, "x.org")).toBe("inspect");
    expect(connect(policy([{ host: "x.org", methods: ["GET"] }]), "x.org")).toBe("inspect");
    expect(connect(policy(["x.org", { host: "x.org", path: "/v1/**" }]), "x.org")).toBe("allow");
    expect(connect(policy(["x.org", { host: "x.org", methods: ["DELETE"], deny: true }]), "x.org")).toBe("inspect");
    expect(connect(policy([{ host: "x.org", methods: ["DELETE"], deny: true }]), "x.org")).toBe("host");
  });

  test("may lead to private addresses where a rule, or where the name leads, says so", () => {
    const local = (rules: NetworkPolicy, place: string) => {
      const verdict = judgeConnection(rules, to(place));
      return verdict.kind === "allow" && verdict.local;
    };
    expect(local(policy(["x.org"]), "x.org")).toBe(false);
    expect(local(policy(["x.org", { host: "*.org", local: true }]), "x.org")).toBe(true);
    expect(local(policy(["10.0.0.1"]), "10.0.0.1")).toBe(true);
    expect(local(policy(["db"], { reach: { db: "127.0.0.1" } }), "db")).toBe(true);
    expect(local(policy(["db"], { learn: true }), "constructor")).toBe(false);
  });
});

describe("a request", () => {
  const rules = policy([
    { host: "x.org", path: "/v1/items", methods: ["GET"] },
    { host: "x.org", path: "/v1/items", methods: ["POST"] },
    { host: "x.org", paths: ["/public/**", "/about"] },
    { host: "x.org", path: "/public/secret/**", deny: true },
    { host: "api.x.org", methods: ["GET", "HEAD"] },
    { host: "open.x.org" },
    { host: "open.x.org", path: "/admin/**", deny: true },
    { host: "open.x.org", methods: ["DELETE"], deny: true },
  ]);

  test.each([
    ["GET x.org/v1/items", "allow"],
    ["POST x.org/v1/items", "allow"],
    ["DELETE x.org/v1/items", "method"],
    ["GET x.org/v1/items/", "path"],
    ["GET x.org/v1", "path"],
    ["PUT x.org/public/a", "allow"],
    ["GET x.org/about", "allow"],
    ["GET x.org/public/secret/a", "denied"],
    ["GET x.org/public/secret%2Fa", "spelling"],
    ["GET x.org/public/./secret/a", "spelling"],
    ["GET x.org/public/%73ecret/a", "spelling"],
    ["GET x.org/public/a%3Ab", "allow"],
    ["get x.org/v1/items", "spelling"],
    ["GeT api.x.org/", "spelling"],
    ["HEAD api.x.org/a//b", "allow"],
    ["POST api.x.org/", "method"],
    ["GET api.x.org:8080/", "port"],
    ["GET open.x.org/", "allow"],
    ["GET open.x.org/admin/a", "denied"],
    ["GET open.x.org/x/../admin/a", "spelling"],
    ["DELETE open.x.org/", "denied"],
    ["delete open.x.org/", "spelling"],
    ["GET y.org/", "host"],
  ])("%s: %s", (line, outcome) => {
    expect(ask(rules, line)).toBe(outcome);
  });

  test("may be spelled in any way where neither path nor method decides", () => {
    expect(ask(policy(["x.org"]), "get x.org/a/../b%2f")).toBe("allow");
  });

  test("is denied if any rule denies it, and else allowed if any rule allows it", () => {
    const host = fc.constantFrom("a.org", "b.org", "*.org");
    const part = fc.record(
      {
        host,
        port: fc.constantFrom(80, 443),
        path: fc.constantFrom("/a", "/b", "/*", "/**"),
        methods: fc.subarray(["GET", "POST"], { minLength: 1 }),
        deny: fc.boolean(),
      },
      { requiredKeys: ["host"] },
    );
    const requests = fc.record({
      host: fc.constantFrom("a.org", "b.org", "c.org"),
      port: fc.constantFrom(80, 443, 81),
      path: fc.constantFrom("/", "/a", "/b/c"),
      method: fc.constantFrom("GET", "POST"),
    });
    // Without ports, what denies holds at all of them.
    const allowing = (rule: WrittenRule): WrittenRule => ({
      ...rule,
      deny: false,
      ...(rule.deny === true && rule.port === undefined ? { ports: [80, 81, 443] } : {}),
    });
    fc.assert(
      fc.property(fc.array(part, { maxLength: 6 }), requests, (written, asked) => {
        const all = policy(written);
        const alone = written.map((rule) => judgeRequest(policy([allowing(rule)]), asked).kind === "allow");
        const denied = written.some(({ deny }, at) => deny === true && alone[at]);
        const allowed = written.some(({ deny }, at) => deny !== true && alone[at]);
        const verdict = judgeRequest(all, asked);
        expect(verdict.kind).toBe(allowed && !denied ? "allow" : "deny");
        const learnt = judgeRequest({ ...all, learn: true }, asked);
        expect(learnt.kind).toBe(denied ? "deny" : "allow");
        // What the connection was told is never taken back in the other direction.
        const first = judgeConnection(all, asked);
        if (first.kind === "deny") expect(verdict.kind).toBe("deny");
        if (first.kind === "allow") expect(verdict.kind).toBe("allow");
      }),
      { numRuns: 1000 },
    );
  });
});

describe("while a box learns", () => {
  const learning = policy(["x.org", { host: "no.x.org", deny: true }, { host: "y.org", path: "/a", deny: true }], {
    learn: true,
  });

  test("everything is allowed but what is denied, and no rule says so", () => {
    expect(judgeConnection(learning, to("anywhere.example:25"))).toEqual({ kind: "allow", rule: null, local: false });
    expect(judgeConnection(learning, to("x.org"))).toMatchObject({ kind: "allow", rule: { origin: "domain 0" } });
    expect(connect(learning, "no.x.org")).toBe("denied");
    expect(connect(learning, "y.org")).toBe("inspect");
    expect(ask(learning, "GET y.org/a")).toBe("denied");
    expect(ask(learning, "GET y.org/b")).toBe("allow");
    expect(ask(learning, "GET z.org/../b")).toBe("allow");
  });

  test("all is looked into, and there are more doors", () => {
    expect(needsInspection(learning, to("z.org"))).toBe(true);
    expect(doorPorts(learning)).toEqual(expect.arrayContaining([22, 80, 443, 3128, 8443, 9418]));
    // Where a program inside would listen, it must be able to.
    expect(doorPorts(learning)).not.toEqual(expect.arrayContaining([8080]));
  });
});

describe("requests must be seen", () => {
  const rules = policy(["plain.org", { host: "x.org", path: "/a" }, { host: "y.org", methods: ["GET"], deny: true }], {
    secrets: [{ name: "T", hosts: ["*.api.org"], headers: ["authorization"], paths: null }],
  });

  test.each([
    ["plain.org", false],
    ["x.org", true],
    ["x.org:8080", false],
    ["y.org", true],
    ["a.api.org", true],
    ["a.api.org:8443", true],
    ["api.org", false],
    ["z.org", false],
  ])("at %s: %s", (place, seen) => {
    expect(needsInspection(rules, to(place))).toBe(seen);
  });
});

test("doors are the web's, a proxy's and those that rules name, each once and in order", () => {
  expect(doorPorts(policy([]))).toEqual([80, 443, 3128]);
  const rules = policy([
    "x.org:5432",
    "y.org:22",
    { host: "z.org", ports: [443, 8443] },
    { host: "n.org", port: 1, deny: true },
  ]);
  expect(doorPorts(rules)).toEqual([22, 80, 443, 3128, 5432, 8443]);
});

describe("a refusal says what was asked, why not, and how the owner can allow it", () => {
  const rules = policy([
    { host: "x.org", path: "/a", methods: ["GET"] },
    { host: "n.org", deny: true },
  ]);
  const words = (line: string) => {
    const verdict = judgeRequest(rules, request(line));
    return verdict.kind === "deny" ? [verdict.message, verdict.remedy] : [];
  };

  test.each([
    [
      "GET api.example.com/x",
      "GET https://api.example.com/x is not allowed: no rule for this host.",
      'The owner can allow it with `podbot … --allow api.example.com`, or in the configuration: [network] domains = ["api.example.com"].',
    ],
    [
      "GET api.example.com:80/x",
      "GET http://api.example.com/x is not allowed: no rule for this host.",
      'The owner can allow it with `podbot … --allow api.example.com`, or in the configuration: [network] domains = ["api.example.com"].',
    ],
    [
      "GET x.org:8443/a",
      "GET x.org:8443/a is not allowed: there are rules for this host, but none for port 8443.",
      'The owner can allow it with `podbot … --allow x.org:8443`, or in the configuration: [network] domains = ["x.org:8443"].',
    ],
    [
      "GET x.org/b",
      "GET https://x.org/b is not allowed: there are rules for this host, but none for this path.",
      'The owner can allow it in the configuration: [network] rules = [{ host = "x.org", port = 443, path = "/b", methods = ["GET"] }].',
    ],
    [
      "POST x.org/a",
      "POST https://x.org/a is not allowed: this path may be asked for, but not with POST.",
      'The owner can allow it in the configuration: [network] rules = [{ host = "x.org", port = 443, path = "/a", methods = ["POST"] }].',
    ],
    [
      "GET n.org/",
      "GET https://n.org/ is not allowed: it is denied by rule 1.",
      "Only the owner can change that rule. Do without, or ask the owner.",
    ],
    [
      "GET x.org/*",
      "GET https://x.org/* is not allowed: there are rules for this host, but none for this path.",
      "No rule can name a path with a star in it alone. Do without, or ask the owner.",
    ],
    [
      "GET x.org/a/../b",
      "GET https://x.org/a/../b is not allowed: it is spelled in a way that others may read otherwise.",
      expect.stringContaining("Spell it plainly"),
    ],
  ])("%s", (line, message, remedy) => {
    expect(words(line)).toEqual([message, remedy]);
  });

  test("of a connection likewise, with addresses in brackets", () => {
    expect(judgeConnection(rules, { host: "::1", port: 5432 })).toMatchObject({
      message: "A connection to [::1]:5432 is not allowed: no rule for this host.",
      // Nobody should be talked into opening the machine's own services, least of all by a program.
      remedy: expect.not.stringContaining("--allow"),
    });
    expect(judgeConnection(rules, { host: "x.net", port: 5432 })).toMatchObject({
      remedy: expect.stringContaining("--allow x.net:5432`"),
    });
    const elsewhere = policy([{ host: "x.org", port: 8443, path: "/a" }]);
    expect(judgeRequest(elsewhere, { host: "x.org", port: 8443, method: "GET", path: "/b" })).toMatchObject({
      remedy: expect.stringContaining('host = "x.org", port = 8443, path = "/b"'),
    });
  });

  test("and never more than can be read", () => {
    expect(judgeConnection(rules, { host: "\x1b[2Jé\u202e", port: 1 })).toMatchObject({
      message: expect.stringMatching(/^A connection to \?\[2J\?\?:1 is not allowed/),
    });
    const [message, remedy] = words(`GET x.org/${"a".repeat(10_000)}`);
    expect(message?.length).toBeLessThan(400);
    expect(remedy?.length).toBeLessThan(500);
  });
});

describe("a host", () => {
  const rules = policy([
    "a.org",
    "*.b.org",
    { host: "c.org", path: "/x" },
    { host: "d.org", methods: ["GET"] },
    { host: "e.org", deny: true },
    { host: "*.f.org", deny: true },
    { host: "g.org", port: 443, deny: true },
    { host: "a.org", path: "/y", deny: true },
  ]);

  test("is named by a rule that allows something, in full or by a pattern", () => {
    const named = ["a.org", "c.org", "x.b.org", "b.org", "e.org", "x.f.org"].map((host) => namedBy(rules, host));
    expect(named).toEqual(["name", "name", "pattern", null, null, null]);
  });

  test("is judged by the request where a rule has paths or methods", () => {
    const judged = ["a.org", "c.org", "d.org", "x.b.org", "c.org:22", "none.org", "x..org"].map((place) =>
      isByRequest(rules, to(place)),
    );
    expect(judged).toEqual([true, true, true, false, false, false, false]);
    const byPath = ["a.org", "c.org", "d.org", "x..org"].map((place) => judgesPaths(rules, to(place)));
    expect(byPath).toEqual([true, true, false, false]);
  });

  test("is denied by its addresses, too, while all others are allowed", () => {
    expect(deniedHosts(rules, 443)).toEqual([]);
    expect(deniedHosts({ ...rules, learn: true }, 443)).toEqual(["e.org", "g.org"]);
    expect(deniedHosts({ ...rules, learn: true }, 22)).toEqual(["e.org"]);
  });
});
