import fc from "fast-check";
import { parse } from "smol-toml";
import { describe, expect, test } from "vitest";
import { judgeConnection, judgeRequest, type NetworkPolicy } from "../../src/policy/network.ts";
import { readDomain, readRule, type WrittenRule } from "../../src/policy/network-rules.ts";
import { type Asked, type Suggestion, suggestRules } from "../../src/policy/suggest.ts";
import { toToml } from "../../src/policy/suggest-toml.ts";

function http(path: string, more: Partial<Asked> = {}): Asked {
  return { kind: "http", verdict: "allowed", host: "api.example.com", port: 443, method: "GET", path, ...more };
}

function tls(host: string, more: Partial<Asked> = {}): Asked {
  return { kind: "tls", verdict: "allowed", host, port: 443, ...more };
}

/** The policy that the printed text makes: what is suggested is what can be written. */
function policyOf(suggestion: Suggestion): NetworkPolicy {
  const { network = {} } = parse(toToml(suggestion)) as {
    network?: { domains?: readonly string[]; rules?: readonly WrittenRule[] };
  };
  return {
    learn: false,
    rules: [
      ...(network.domains ?? []).map((domain) => readDomain(domain, "test")),
      ...(network.rules ?? []).map((rule) => readRule(rule, "test")),
    ],
    secrets: [],
    reach: {},
  };
}

function isAllowed(policy: NetworkPolicy, { kind, host, port, method, path }: Asked): boolean {
  const verdict = judgeConnection(policy, { host, port });
  if (verdict.kind !== "inspect") return verdict.kind === "allow";
  if (kind !== "http" || method === undefined || path === undefined) return false;
  return judgeRequest(policy, { host, port, method, path }).kind === "allow";
}

function pathsFor(...paths: string[]): readonly string[] {
  const { rules } = suggestRules(paths.map((path) => http(path)));
  expect(rules.length).toBe(1);
  return rules[0]?.paths as readonly string[];
}

describe("what is suggested", () => {
  test("is nothing for nothing, and for names that were only looked up", () => {
    expect(suggestRules([])).toEqual({ domains: [], rules: [], remarks: [] });
    expect(suggestRules([tls("a.example.com", { kind: "dns", port: 53 })]).domains).toEqual([]);
    expect(toToml(suggestRules([]))).toBe("# Nothing was asked for that a rule could allow.\n");
  });

  test("is a host where no path is known, with its port unless both of the web were asked for", () => {
    const { domains, rules } = suggestRules([
      tls("b.example.com"),
      tls("b.example.com", { port: 80, kind: "tcp" }),
      tls("a.example.com", { verdict: "refused", reason: "host" }),
      tls("db.example.com", { kind: "tcp", port: 5432 }),
      tls("db.example.com", { kind: "tcp", port: 22 }),
      tls("2001:db8::1", { kind: "tcp", port: 5432 }),
    ]);
    expect(rules).toEqual([]);
    expect(domains).toEqual([
      { domain: "[2001:db8::1]:5432", asked: 1, refused: 0 },
      { domain: "a.example.com:443", asked: 1, refused: 1 },
      { domain: "b.example.com", asked: 2, refused: 0 },
      { domain: "db.example.com:22", asked: 1, refused: 0 },
      { domain: "db.example.com:5432", asked: 1, refused: 0 },
    ]);
  });

  test("is method and path where they are known", () => {
    const asked = [
      http("/v1/a"),
      http("/v1/a", { verdict: "refused", reason: "path" }),
      http("/v1/b", { method: "POST" }),
      http("/v1/b"),
      http("/v1/c"),
      http("/v1/a", { port: 8443 }),
      http("/v1/c", { port: 8443 }),
      http("/x", { host: "other.example.com", port: 80 }),
    ];
    expect(suggestRules(asked).rules).toEqual([
      {
        host: "api.example.com",
        ports: [443, 8443],
        methods: ["GET"],
        paths: ["/v1/a", "/v1/c"],
        asked: 5,
        refused: 1,
      },
      { host: "api.example.com", ports: [443], methods: ["GET", "POST"], paths: ["/v1/b"], asked: 2, refused: 0 },
      { host: "other.example.com", ports: [80], methods: ["GET"], paths: ["/x"], asked: 1, refused: 0 },
    ]);
  });

  test("stays what paths are known, whatever else one connection there has carried", () => {
    const connect: Asked = { kind: "http", verdict: "allowed", host: "api.example.com", port: 443, method: "CONNECT" };
    for (const odd of [tls("api.example.com"), tls("api.example.com", { kind: "tcp" }), connect]) {
      expect(suggestRules([http("/only/this"), odd])).toEqual({
        domains: [],
        rules: [
          { host: "api.example.com", ports: [443], methods: ["GET"], paths: ["/only/this"], asked: 1, refused: 0 },
        ],
        remarks: [
          'Left out: "api.example.com:443" carried once something of which no path is known, beside requests. Only a rule without paths would allow that, and with it all requests: [[network.rules]] host = "api.example.com", port = 443.',
        ],
      });
    }
    // Another port is another matter.
    expect(suggestRules([http("/only/this"), tls("api.example.com", { port: 80 })])).toMatchObject({
      domains: [{ domain: "api.example.com:80" }],
      rules: [{ paths: ["/only/this"] }],
      remarks: [],
    });
  });

  test("is the host alone where no paths are wanted", () => {
    expect(suggestRules([http("/v1/a"), http("/b", { port: 8443 })], { hostsOnly: true })).toMatchObject({
      domains: [{ domain: "api.example.com:443" }, { domain: "api.example.com:8443" }],
      rules: [],
    });
  });

  test("is one spelling of a host", () => {
    expect(suggestRules([tls("API.Example.com"), tls("api.example.com")]).domains).toEqual([
      { domain: "api.example.com:443", asked: 2, refused: 0 },
    ]);
  });
});

describe("paths", () => {
  test("are listed while they are few", () => {
    expect(pathsFor("/e", "/a", "/b", "/c", "/d")).toEqual(["/a", "/b", "/c", "/d", "/e"]);
  });

  test("are put together below what they share, by whole segments", () => {
    expect(pathsFor(...["a", "b", "c", "d", "e", "f"].map((name) => `/v1/items/${name}`))).toEqual(["/v1/items/**"]);
    expect(pathsFor("/v1", "/v1/x", "/v1/y", "/v1/z", "/v1/xx/y", "/v1/")).toEqual(["/v1", "/v1/**"]);
    expect(pathsFor("/ax", "/ay", "/az", "/aa", "/ab", "/ac")).toEqual(["/**"]);
    expect(pathsFor("/", "/a", "/b", "/c", "/d", "/e")).toEqual(["/**"]);
  });

  test("that share nothing are put together by their first segment", () => {
    expect(pathsFor("/v1/a", "/v1/b", "/v2/x/a", "/v2/x/b", "/ping", "/v1/c")).toEqual(["/ping", "/v1/**", "/v2/x/**"]);
  });

  test.each([
    ["/users/12345/posts", "/users/*/posts"],
    ["/repos/a/b/commits/4be02b9", "/repos/a/b/commits/*"],
    ["/x/123e4567-e89b-12d3-a456-426614174000", "/x/*"],
    ["/bot110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw/getMe", "/*/getMe"],
    ["/hooks/T00000000/XXXXXXXXXXXXXXXXXXXXXXXX", "/hooks/T00000000/*"],
    ["/x/1234567890-1234567890123456", "/x/1234567890-1234567890123456"],
    ["/hooks/T0A1B2C3D4/k3mzq7w2ha", "/hooks/*/*"],
    ["/x/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N", "/x/*"],
    ["/x/sk-ant-aaaaaaaaaaaaaaaaaaaaaaaa", "/x/*"],
    ["/x/Ab1-Cd2_Ef3-Gh4_Ij5-Kl6_Mn7", "/x/*"],
    ["/x/aBcDeFgHIjKlMnOp", "/x/*"],
    ["/x/[REDACTED]", "/x/*"],
    [`/x/${"long-".repeat(20)}`, "/x/*"],
    ["/v1/messages/count_tokens", "/v1/messages/count_tokens"],
    ["/some-package/-/some-package-1.2.3.tgz", "/some-package/-/some-package-1.2.3.tgz"],
    ["/getApplicationConfiguration", "/getApplicationConfiguration"],
    ["/dists/stable/InRelease", "/dists/stable/InRelease"],
    ["/a%20b", "/a%20b"],
  ])("%s becomes %s", (path, pattern) => {
    expect(pathsFor(path)).toEqual([pattern]);
  });

  test("that another one stands for are not said", () => {
    expect(pathsFor("/users/1", "/users/me", "/users/2")).toEqual(["/users/*"]);
  });
});

describe("left out, and said so, is", () => {
  const left = (...asked: Asked[]) => {
    const { domains, rules, remarks } = suggestRules(asked);
    expect([...domains, ...rules]).toEqual([]);
    return remarks;
  };

  test("what no rule could allow", () => {
    expect(left(tls("nul\0\u001b\u202e\u009b.example.com."))).toEqual([
      'Left out: "nul\\u0000\\u001b\\u202e\\u009b.example.com.:443" (once) is no name that a rule can hold.',
    ]);
    expect(left(http("/a/../b"), http("/a/%2e%2e/b"))[0]).toMatch(/\(twice\) was asked for paths or methods/);
    expect(left(http("/a", { method: "gEt" }))[0]).toMatch(/spelled oddly/);
  });

  test("a path with a star of its own: as a rule it would allow others", () => {
    const remark =
      'Left out: "api.example.com:443" (3 times) was asked for paths with a * in them. No rule can name these alone.';
    expect(left(http("/*"), http("/v1/%2A"), http("/a/**/b"))).toEqual([remark]);
    expect(suggestRules([http("/*"), http("/v1/*"), http("/a/*/b"), http("/a")])).toMatchObject({
      rules: [{ paths: ["/a"] }],
      remarks: [remark],
    });
  });

  test("what was refused for another reason than that no rule was there", () => {
    const refused = (reason?: string) =>
      left(tls("x.example.com", { verdict: "refused", ...(reason === undefined ? {} : { reason }) }))[0];
    expect(refused("denied")).toBe(
      'Left out: "x.example.com:443" was refused once: a rule denies it, and that wins over what allows.',
    );
    expect(refused("address")).toMatch(/local = true/);
    expect(refused("protocol")).toMatch(/not HTTP/);
    expect(refused("spelling")).toMatch(/spelled oddly/);
    expect(refused("strange\nwords")).toMatch(/once: "strange\\nwords"\.$/);
    expect(refused()).toMatch(/once: ""\.$/);
  });

  test("an address that was refused: a rule would allow it even where it is a private one", () => {
    const metadata = { verdict: "refused", reason: "host", port: 80 } as const;
    expect(left(tls("169.254.169.254", metadata))[0]).toMatch(/^Left out: "169\.254\.169\.254:80" \(once\) was asked/);
  });

  test("what nobody answered, unless it went well another time", () => {
    const unknown = tls("no.example.com", { verdict: "failed", reason: "no.example.com is not known" });
    expect(left(unknown, unknown, unknown)).toEqual([
      'Left out: "no.example.com:443" failed 3 times: "no.example.com is not known".',
    ]);
    expect(left(http("/a", { verdict: "failed", status: 502 }))[0]).toMatch(/failed once: ""/);
    const { domains, remarks } = suggestRules([unknown, tls("no.example.com")]);
    expect([domains.length, remarks]).toEqual([1, []]);
  });

  test("not what was answered and then broken off", () => {
    const broken = http("/stream", { verdict: "failed", status: 200, reason: "the box has broken it off" });
    expect(suggestRules([broken])).toMatchObject({ rules: [{ paths: ["/stream"] }], remarks: [] });
  });

  test("told in some lines, however much there is, and however long it is", () => {
    const many = Array.from({ length: 30 }, (_, at) => tls(`${"x".repeat(300)}${at}.`));
    const remarks = left(...many);
    expect(remarks.length).toBe(21);
    expect(remarks.at(-1)).toBe("Left out: 10 more; `podbot audit` shows them.");
    for (const remark of remarks) expect(remark.length).toBeLessThan(300);
  });
});

describe("a glob of hosts is never suggested, but said to be possible", () => {
  const remarks = (...hosts: string[]) => suggestRules(hosts.map((host) => tls(host))).remarks;

  test("where three hosts share a parent that is nobody's registry", () => {
    expect(remarks("a.cdn.example.com", "b.cdn.example.com", "c.cdn.example.com")).toEqual([
      '"*.cdn.example.com" would stand for 3 of these, and for any other name there.',
    ]);
  });

  test("and otherwise not", () => {
    expect(remarks("a.cdn.example.com", "b.cdn.example.com", "c.example.com")).toEqual([]);
    expect(remarks("a.example.com", "b.example.com", "c.example.com", "localhost")).toEqual([]);
    expect(remarks("192.0.2.1", "193.0.2.1", "194.0.2.1")).toEqual([]);
  });
});

test("the text can be read, and says how often each was asked for", () => {
  const suggestion = suggestRules([
    tls("a.example.com"),
    tls("b.example.com", { verdict: "refused", reason: "host" }),
    http("/v1", { port: 80 }),
    http("/v1", { verdict: "refused", reason: "host" }),
    http("/v1"),
    tls("x\n[evil]"),
  ]);
  expect(toToml(suggestion)).toBe(`[network]
domains = [
  "a.example.com:443", # asked for once
  "b.example.com:443", # asked for once, and refused
]

# asked for 3 times, refused once
[[network.rules]]
host = "api.example.com"
ports = [80, 443]
methods = ["GET"]
paths = ["/v1"]

# Left out: "x\\n[evil]:443" (once) is no name that a rule can hold.
`);
});

describe("for whatever is asked,", () => {
  const word = fc.constantFrom("a", "b", "items", "v1", "me", "4be02b9", "12", "x-y", "a%20b", "*", "~u", "");
  const path = fc.array(word, { minLength: 1, maxLength: 4 }).map((words) => `/${words.join("/")}`);
  const host = fc.constantFrom(
    "a.example.com",
    "b.example.com",
    "A.example.com",
    "192.0.2.7",
    "2001:db8::7",
    "odd..name",
  );
  const entry: fc.Arbitrary<Asked> = fc.record({
    kind: fc.constantFrom("http", "http", "http", "http", "http", "tls", "tcp"),
    verdict: fc.constantFrom("allowed", "refused"),
    host,
    port: fc.constantFrom(80, 443, 8443),
    method: fc.constantFrom("GET", "POST", "M-SEARCH"),
    path,
    reason: fc.constant("host"),
  });

  test("all that was not left out is allowed by the printed text", () => {
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 40 }), fc.boolean(), (asked, hostsOnly) => {
        const suggestion = suggestRules(asked, { hostsOnly });
        const policy = policyOf(suggestion);
        for (const one of asked) {
          const isOpaque =
            one.kind !== "http" && suggestion.remarks.some((remark) => remark.includes("no path is known"));
          const isLeft =
            isOpaque || (suggestion.remarks.length > 0 && suggestRules([one], { hostsOnly }).remarks.length > 0);
          if (!isLeft) expect(isAllowed(policy, one), JSON.stringify(one)).toBe(true);
        }
      }),
    );
  });

  test("no other host, port, method or neighbouring path is", () => {
    const plain = fc
      .array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 3 })
      .map((w) => `/${w.join("/")}`);
    fc.assert(
      fc.property(fc.uniqueArray(plain, { minLength: 1, maxLength: 5 }), (paths) => {
        const policy = policyOf(suggestRules(paths.map((one) => http(one))));
        for (const one of paths) {
          expect(isAllowed(policy, http(one))).toBe(true);
          for (const other of [`${one}x`, `${one}/x`, `/x${one}`, `${one}/`])
            expect(isAllowed(policy, http(other))).toBe(false);
          expect(isAllowed(policy, http(one, { method: "POST" }))).toBe(false);
          expect(isAllowed(policy, http(one, { port: 8443 }))).toBe(false);
          expect(isAllowed(policy, http(one, { host: "x.api.example.com" }))).toBe(false);
        }
      }),
    );
  });

  test("what is put together stays below what was asked for", () => {
    const names = fc.uniqueArray(fc.stringMatching(/^[a-f]{1,4}$/), { minLength: 6, maxLength: 30 });
    fc.assert(
      fc.property(names, (words) => {
        const policy = policyOf(suggestRules(words.map((name) => http(`/v1/${name}`))));
        for (const name of words) expect(isAllowed(policy, http(`/v1/${name}`))).toBe(true);
        for (const other of ["/v1", "/v2/a", "/a", "/"]) expect(isAllowed(policy, http(other))).toBe(false);
      }),
    );
  });

  test("tokens are not written down", () => {
    const signs = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".split("");
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...signs), { minLength: 32, maxLength: 64 }), (letters) => {
        const token = letters.join("");
        fc.pre(/\d/.test(token) && /[A-Za-z]/.test(token));
        expect(toToml(suggestRules([http(`/x/${token}/y`)]))).not.toContain(token);
      }),
    );
  });
});
