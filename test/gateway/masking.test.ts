// @module-tag security
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type HeaderList, type MaskedSecret, maskRequest } from "../../src/gateway/masking.ts";

const real = "ghp_RealRealRealReal0123";
const surrogate = "ghp_FakeFakeFakeFake9876";

const github: MaskedSecret = {
  name: "GH",
  real,
  surrogate,
  hosts: ["api.example.org", "*.git.example.org"],
  headers: ["authorization", "x-token", "cookie"],
  paths: null,
};

const request = { host: "api.example.org", port: 443, path: "/user", secure: true };

const basic = (text: string) => `Basic ${Buffer.from(text, "latin1").toString("base64")}`;

/** The values of one header, after the gateway. */
function sent(headers: HeaderList, changed: Partial<typeof request> = {}, secrets = [github]) {
  const result = maskRequest(secrets, { ...request, ...changed }, headers);
  const { echoes: _, ...counted } = result;
  return { ...counted, values: result.headers.map(([, value]) => value) };
}

describe("a surrogate from before the secret was replaced", () => {
  const before = "ghp_FakeFakeFakeFake98765-and-longer";
  const renewed = { ...github, earlier: [before] };

  test("is replaced as well, where it may go, and comes back as the one of now, which is as long", () => {
    const { headers, echoes } = maskRequest([renewed], request, [["authorization", basic(`git:${before}`)]]);
    expect(headers).toEqual([["authorization", basic(`git:${real}`)]]);
    expect(echoes).toMatchObject([
      {
        real: basic(`git:${real}`).slice("Basic ".length),
        surrogate: basic(`git:${surrogate}`).slice("Basic ".length),
      },
    ]);
    expect(sent([["x-token", before]], {}, [renewed]).values).toEqual([real]);
  });

  test("stays what it is elsewhere", () => {
    expect(sent([["x-token", before]], { secure: false }, [renewed])).toMatchObject({ values: [before], masked: 0 });
    expect(sent([["x-token", before]], { host: "other.example.org" }, [renewed]).values).toEqual([before]);
    // The control: whoever is not known is taken out.
    expect(sent([["x-token", before]]).values).toEqual([]);
  });
});

describe("a surrogate is replaced by the real value", () => {
  test.each([
    ["behind Bearer", "Authorization", `Bearer ${surrogate}`, `Bearer ${real}`],
    ["behind a scheme in any case", "authorization", `bearer ${surrogate}`, `bearer ${real}`],
    ["behind token", "AUTHORIZATION", `token ${surrogate}`, `token ${real}`],
    ["behind more than one space", "authorization", `Bearer \t ${surrogate} `, `Bearer ${real}`],
    ["as the whole value", "X-Token", surrogate, real],
    ["as the whole value, with space around", "x-token", ` ${surrogate}\t`, real],
    [
      "as the password of Basic",
      "authorization",
      basic(`x-access-token:${surrogate}`),
      basic(`x-access-token:${real}`),
    ],
    ["as the user of Basic", "authorization", basic(`${surrogate}:`), basic(`${real}:`)],
    [
      "as the user of Basic by custom",
      "authorization",
      basic(`${surrogate}:x-oauth-basic`),
      basic(`${real}:x-oauth-basic`),
    ],
    ["as the password alone", "authorization", basic(`:${surrogate}`), basic(`:${real}`)],
    ["in Basic without padding", "authorization", basic(`git:${surrogate}`).replace(/=+$/, ""), basic(`git:${real}`)],
    ["as the value of a cookie", "cookie", `session=${surrogate}`, `session=${real}`],
  ])("%s", (_, name, written, expected) => {
    expect(
      sent([
        ["accept", "*/*"],
        [name, written],
      ]),
    ).toEqual({
      headers: [
        ["accept", "*/*"],
        [name, expected],
      ],
      values: ["*/*", expected],
      masked: 1,
      stripped: 0,
    });
  });

  test("and what a server may give back of it in Base64 is known, too", () => {
    const echoes = (value: string) => maskRequest([github], request, [["authorization", value]]).echoes;
    const token = (text: string) => basic(text).slice("Basic ".length);
    expect(echoes(basic(`git:${surrogate}`))).toMatchObject([
      { real: token(`git:${real}`), surrogate: token(`git:${surrogate}`) },
    ]);
    expect(echoes(`Bearer ${surrogate}`)).toEqual([]);
    expect(
      maskRequest([github], { ...request, secure: false }, [["authorization", basic(`git:${surrogate}`)]]).echoes,
    ).toEqual([]);
  });

  test("as user and as password of Basic, each counted", () => {
    const other = { ...github, name: "other", real: "real-user-12345678", surrogate: "fake-user-87654321" };
    const result = sent([["authorization", basic(`${other.surrogate}:${surrogate}`)]], {}, [github, other]);
    expect(result).toMatchObject({ values: [basic(`${other.real}:${real}`)], masked: 2, stripped: 0 });
  });

  test("on every host that a pattern stands for", () => {
    expect(sent([["authorization", `Bearer ${surrogate}`]], { host: "a.git.example.org" }).masked).toBe(1);
  });

  test("on the paths named alone, and not on one that can be read in two ways", () => {
    const bound = [{ ...github, paths: ["/user", "/repos/**"] }];
    const header: HeaderList = [["authorization", `Bearer ${surrogate}`]];
    expect(sent(header, { path: "/user" }, bound)).toMatchObject({ values: [`Bearer ${real}`], masked: 1 });
    expect(sent(header, { path: "/repos/a/b" }, bound).masked).toBe(1);
    for (const path of ["/other", "/repos/../other", "/repos/%2e%2e/other", "//user"]) {
      expect(sent(header, { path }, bound)).toMatchObject({ values: [`Bearer ${surrogate}`], masked: 0, stripped: 0 });
    }
  });

  test("where one of two bindings of the same value lets it, in whatever order", () => {
    const bindings = [
      { ...github, paths: ["/user"] },
      { ...github, name: "again", paths: ["/else"] },
    ];
    const header: HeaderList = [["authorization", `Bearer ${surrogate}`]];
    for (const secrets of [bindings, bindings.toReversed()]) {
      expect(sent(header, {}, secrets)).toMatchObject({ values: [`Bearer ${real}`], masked: 1 });
      expect(sent(header, { path: "/third" }, secrets)).toMatchObject({ values: [`Bearer ${surrogate}`], masked: 0 });
    }
  });
});

describe("a surrogate stays one", () => {
  test.each<[string, Partial<typeof request>, string, string]>([
    ["without TLS", { secure: false }, "authorization", `Bearer ${surrogate}`],
    ["on another host", { host: "evil.example.net" }, "authorization", `Bearer ${surrogate}`],
    ["on a host whose name only ends alike", { host: "xapi.example.org" }, "authorization", `Bearer ${surrogate}`],
    ["below a host that is named exactly", { host: "x.api.example.org" }, "authorization", `Bearer ${surrogate}`],
    ["in a header that is not named", {}, "x-other", surrogate],
    ["in a referrer", {}, "referer", `https://api.example.org/?t=${surrogate}`],
  ])("%s", (_, changed, name, value) => {
    expect(sent([[name, value]], changed)).toMatchObject({ values: [value], masked: 0, stripped: 0 });
  });
});

describe("a credential that is not ours is taken out on a bound host", () => {
  test.each([
    ["a token of somebody else", "Bearer ghp_attacker00000000"],
    ["a token of somebody else without a scheme", "ghp_attacker00000000"],
    ["a surrogate within a longer word", `Bearer x${surrogate}`],
    ["a surrogate with something behind it", `Bearer ${surrogate}x`],
    ["a surrogate behind a comma", `Bearer a, Bearer ${surrogate}`],
    ["a surrogate behind a word that is not a scheme", `ghp_attacker00000000 ${surrogate}`],
    ["a surrogate behind a word of the box's own", `attacker ${surrogate}`],
    ["a surrogate as a parameter", `Digest username="${surrogate}"`],
    ["Basic of somebody else", basic("me:ghp_attacker00000000")],
    ["Basic with a surrogate that is only part of the password", basic(`me:${surrogate}2`)],
    ["Basic with a key behind a surrogate", basic(`${surrogate}:ghp_attacker00000000`)],
    ["Basic with a key before a surrogate", basic(`ghp_attacker00000000:${surrogate}`)],
    ["Basic with bytes before a surrogate", basic(`\xff\n:${surrogate}`)],
    ["Basic without a colon", basic(surrogate)],
    ["Basic that is not in base64", `Basic ${surrogate}`],
    ["Basic without credentials", "Basic"],
    ["a signature with somebody's own keys", "AWS4-HMAC-SHA256 Credential=AKIAATTACKER/20260101/r/s/aws4_request"],
    ["the real value, however it was found out", `Bearer ${real}`],
    ["nothing at all", ""],
  ])("%s", (_, value) => {
    const headers: HeaderList = [
      ["Authorization", value],
      ["accept", "*/*"],
    ];
    expect(sent(headers)).toMatchObject({ values: ["*/*"], masked: 0, stripped: 1 });
    // The same goes through where nothing is bound.
    expect(sent(headers, { host: "elsewhere.example.org" })).toMatchObject({ values: [value, "*/*"], stripped: 0 });
  });

  test("in plain HTTP and on paths that the secret is not for, too", () => {
    const foreign: HeaderList = [["authorization", "Bearer attacker"]];
    expect(sent(foreign, { secure: false })).toMatchObject({ values: [], stripped: 1 });
    expect(sent(foreign, {}, [{ ...github, paths: ["/none"] }])).toMatchObject({ values: [], stripped: 1 });
  });

  test("where the secret has no value, too", () => {
    const absent = [{ ...github, real: "", surrogate: "" }];
    expect(
      sent(
        [
          ["authorization", "Bearer attacker"],
          ["x-token", ""],
        ],
        {},
        absent,
      ),
    ).toMatchObject({
      values: [],
      stripped: 2,
    });
  });

  test("where it is a surrogate that belongs to another host", () => {
    const other = { ...github, name: "other", surrogate: "fake-other-12345678", hosts: ["other.example.org"] };
    expect(sent([["authorization", `Bearer ${other.surrogate}`]], {}, [github, other]).values).toEqual([]);
  });

  test("where it is in a header that is another secret's", () => {
    const key = { ...github, name: "key", surrogate: "fake-key-123456789", headers: ["x-key"] };
    expect(sent([["authorization", `Bearer ${key.surrogate}`]], {}, [github, key]).values).toEqual([]);
    expect(sent([["x-key", surrogate]], {}, [github, key]).values).toEqual([]);
  });

  test("where it is in a header that some take for the same", () => {
    for (const name of ["X_Token", "x.token", "x_token"]) {
      expect(sent([[name, "ghp_attacker00000000"]])).toMatchObject({ values: [], stripped: 1 });
      expect(sent([[name, surrogate]])).toMatchObject({ values: [], masked: 0, stripped: 1 });
      expect(sent([[name, "mine"]], { host: "elsewhere.example.org" })).toMatchObject({
        values: ["mine"],
        stripped: 0,
      });
    }
    expect(sent([["x-token-2", "mine"]])).toMatchObject({ values: ["mine"], stripped: 0 });
  });

  test("where it is one of several cookies", () => {
    const cookies = `tracker=1; session=${surrogate};; other=2`;
    expect(sent([["cookie", cookies]])).toMatchObject({ values: [`session=${real}`], masked: 1, stripped: 2 });
    expect(sent([["cookie", "a=1; b=2"]])).toMatchObject({ values: [], stripped: 1 });
    // Each on its own, as HTTP/2 sends them.
    const single: HeaderList = [
      ["cookie", "a=1"],
      ["cookie", `b=${surrogate}`],
      ["cookie", `c=${surrogate}`],
    ];
    expect(sent(single)).toMatchObject({ values: [`b=${real}`, `c=${real}`], masked: 2, stripped: 1 });
  });
});

describe("of a header that is there more than once", () => {
  const foreign = "Bearer attacker";
  const ours = `Bearer ${surrogate}`;
  test.each([
    [[ours, foreign, foreign]],
    [[foreign, ours, foreign]],
    [[foreign, foreign, ours]],
    [[foreign, ours, ours]],
  ])("only the first with a surrogate is left: %j", (values) => {
    const headers = values.map((value, at) => [at === 1 ? "AUTHORIZATION" : "authorization", value] as const);
    expect(sent(headers)).toMatchObject({ values: [`Bearer ${real}`], masked: 1, stripped: 2 });
  });

  test("none is left where none is ours", () => {
    expect(
      sent([
        ["authorization", foreign],
        ["Authorization", foreign],
      ]),
    ).toMatchObject({ values: [], stripped: 2 });
  });
});

test("what is meant for a proxy goes no further, whatever is bound", () => {
  const headers: HeaderList = [
    ["Proxy-Authorization", basic("a:b")],
    ["accept", "*/*"],
  ];
  expect(sent(headers, {}, [])).toMatchObject({ values: ["*/*"], stripped: 0 });
});

test("no header ever ends within its value", () => {
  const split = [{ ...github, real: "a\r\nx-evil: 1" }];
  expect(sent([["x-token", surrogate]], {}, split)).toMatchObject({ values: [surrogate], masked: 0 });
  const text = fc.oneof(fc.constant(surrogate), fc.constant(" "), fc.constant("Bearer"), fc.string());
  fc.assert(
    fc.property(
      fc.array(text).map((parts) => parts.join("")),
      (value) => {
        fc.pre(!/[\r\n]/.test(value));
        for (const made of sent([
          ["authorization", value],
          ["cookie", value],
        ]).values)
          expect(made).not.toMatch(/[\r\n]/);
      },
    ),
  );
});
