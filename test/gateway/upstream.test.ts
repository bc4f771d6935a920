// @module-tag security
import { X509Certificate } from "node:crypto";
import { connect as connectHttp2 } from "node:http2";
import type { Socket } from "node:net";
import { afterAll, describe, expect, test } from "vitest";
import { makeAuthority } from "../../src/gateway/authority.ts";
import type { MaskedSecret } from "../../src/gateway/masking.ts";
import { readUpstream } from "../../src/upstream/upstream.ts";
import { ConnectProxy, type ConnectProxyOptions } from "../upstream/connect-proxy.ts";
import { Inside, Outside, parse, policyOf, readAll, readUntil, rule, say } from "./kit.ts";

const outside = new Outside();
afterAll(() => outside[Symbol.asyncDispose]());

const host = "api.example.com";
const password = "s3cr3t:@/word";
const login = `me:${password}`;
const traces = [password, encodeURIComponent(password), Buffer.from(login).toString("base64")];
/** Public as far as anybody can tell, and nobody's. */
const somewhere = "3ffe::1";
const request = (path = "/", name = host) => `GET ${path} HTTP/1.1\r\nHost: ${name}\r\nConnection: close\r\n\r\n`;

const secret: MaskedSecret = {
  name: "KEY",
  real: "sk-real-0123456789abcdef",
  surrogate: "sk-fake-fedcba9876543210",
  hosts: [host],
  headers: ["authorization"],
  paths: null,
};

const servers = {
  web: outside.http((incoming, response) => response.end(`plain ${incoming.url}`)),
  secure: outside.https(host, (incoming, response) => response.end(`heard ${incoming.headers.authorization}`)),
  http2: outside.http2(host, (stream, headers) => {
    stream.respond({ ":status": 200 });
    stream.end(`two ${headers["authorization"]}`);
  }),
  ssh: outside.tcp((socket) => {
    socket.write("SSH-2.0-server\r\n");
    socket.once("data", (bytes) => socket.end(`heard ${bytes}`));
  }),
};

async function openProxy(more: Partial<ConnectProxyOptions> = {}): Promise<ConnectProxy> {
  const places = {
    [`${host}:80`]: await servers.web,
    [`${host}:443`]: await servers.secure,
    [`${host}:8443`]: await servers.http2,
    [`${host}:22`]: await servers.ssh,
    [`[${somewhere}]:80`]: await servers.web,
  };
  return ConnectProxy.open({ places, ...more });
}

type More = ConstructorParameters<typeof Inside>[2];
const rules = [rule(host, { ports: [22, 80, 443, 8443] })];

function behind(proxy: ConnectProxy, more: More = {}, policy = policyOf(rules), none = "", as?: string | null): Inside {
  const inside = new Inside(outside, policy, {
    upstream: readUpstream(proxy.address(as), { NO_PROXY: none }),
    resolve: async () => [somewhere],
    ...more,
    limits: { listenMs: 300, lingerMs: 200, ...more.limits },
  });
  inside.believed = [outside.authority.certificatePem];
  return inside;
}

const status = async (inside: Inside, name = host) => parse(await say(await inside.dial(name, 80), request("/", name)));

/** All but names, which lead nowhere. */
const asked = ({ audit }: Inside) => audit.filter(({ kind }) => kind !== "dns");

const { certificatePem: cert, keyPem: key } = outside.authority.leafFor("127.0.0.1");
const kinds: readonly (readonly [string, Partial<ConnectProxyOptions>])[] = [
  ["in the clear", {}],
  ["that wants to know who asks", { login }],
  ["that speaks TLS and wants to know who asks", { login, identity: { cert, key } }],
];

describe.each(kinds)("by a proxy %s", (_name, kind) => {
  test("TLS is passed on as it is", async () => {
    await using proxy = await openProxy(kind);
    await using inside = behind(proxy);
    const socket = await inside.secure(host);
    expect(socket.getPeerX509Certificate()?.issuer).toBe(new X509Certificate(outside.authority.certificatePem).subject);
    expect(parse(await say(socket, request()))).toMatchObject({ status: 200, body: "heard undefined" });
    expect(proxy.asked).toEqual([`${host}:443`]);
    await expect.poll(() => inside.audit).toMatchObject([{ kind: "tls", verdict: "allowed", host, port: 443 }]);
  });

  test("TLS is opened, and a secret put in", async () => {
    await using proxy = await openProxy(kind);
    await using inside = behind(proxy, { secrets: [secret] }, policyOf(rules, { secrets: [secret] }));
    const asked = request().replace("Connection", `Authorization: Bearer ${secret.surrogate}\r\nConnection`);
    const { status, body } = parse(await say(await inside.secure(host), asked));
    expect([status, body]).toEqual([200, `heard Bearer ${secret.surrogate}`]);
    await expect.poll(() => inside.audit).toMatchObject([{ kind: "http", verdict: "allowed", masked: 1 }]);
    expect(proxy.asked).toEqual([`${host}:443`]);
  });

  test("HTTP/2 is spoken", async () => {
    await using proxy = await openProxy(kind);
    await using inside = behind(proxy, { secrets: [secret] }, policyOf(rules, { secrets: [secret] }));
    const socket = await inside.secure(host, { port: 8443, alpn: ["h2"] });
    const session = connectHttp2(`https://${host}`, { createConnection: () => socket });
    const stream = session.request({ ":path": "/", ":authority": `${host}:8443`, authorization: secret.surrogate });
    expect(await readAll(stream as unknown as Socket)).toBe(`two ${secret.surrogate}`);
    session.destroy();
    expect(proxy.asked).toEqual([`${host}:8443`]);
  });

  test("plain HTTP is asked for", async () => {
    await using proxy = await openProxy(kind);
    await using inside = behind(proxy);
    for (const path of ["/a", "/b"]) {
      expect(parse(await say(await inside.dial(host, 80), request(path)))).toMatchObject({ body: `plain ${path}` });
    }
    // And the connection is kept for the next one.
    expect(proxy.asked).toEqual([`${host}:80`]);
  });

  test("other protocols pass, also where the other side speaks first", async () => {
    await using proxy = await openProxy(kind);
    await using inside = behind(proxy);
    const { socket } = await inside.connect(`${host}:22`);
    expect(await readUntil(socket, "\r\n")).toBe("SSH-2.0-server\r\n");
    expect(await say(socket, "SSH-2.0-client\r\n")).toBe("heard SSH-2.0-client\r\n");
    expect(proxy.asked).toEqual([`${host}:22`]);
    await expect.poll(() => inside.audit).toMatchObject([{ kind: "tcp", verdict: "allowed", sent: 16, received: 38 }]);
  });
});

describe("the proxy is not asked for", () => {
  test("what no rule allows; for what one does, it is", async () => {
    await using proxy = await openProxy();
    await using inside = behind(proxy);
    expect((await status(inside, "other.example.com")).status).toBe(403);
    expect(proxy.asked).toEqual([]);
    expect((await status(inside)).status).toBe(200);
    expect(proxy.asked).toEqual([`${host}:80`]);
  });

  test.each([
    [["10.1.2.3"]],
    [["127.0.0.1"]],
    [["169.254.169.254"]],
    // It would be the proxy that chooses.
    [[somewhere, "192.168.1.1"]],
    [[somewhere, "fe80::1%eth0"]],
  ])("a name that leads to %j; for the same name elsewhere, it is", async (addresses) => {
    await using proxy = await openProxy();
    let known: readonly string[] = addresses;
    await using inside = behind(proxy, { resolve: async () => known });
    const refused = await status(inside);
    expect(refused.status).toBe(403);
    expect(refused.body).toContain('"reason": "address"');
    expect(proxy.asked).toEqual([]);
    known = [somewhere];
    expect((await status(inside)).status).toBe(200);
  });

  test("addresses of this machine's own network", async () => {
    await using proxy = await openProxy();
    await using inside = behind(proxy, { neighbourhood: () => ["3ffe::7/64"] });
    expect((await status(inside)).body).toContain("neighbouring");
    expect(proxy.asked).toEqual([]);
  });

  test("private addresses by number; for public ones, it is", async () => {
    await using proxy = await openProxy();
    await using inside = behind(proxy, {}, policyOf([], { learn: true }));
    for (const address of ["10.1.2.3", "169.254.169.254", "127.0.0.1", "[::1]"]) {
      const { socket } = await inside.connect(`${address}:80`);
      expect(parse(await say(socket, request("/", address))).body).toContain('"reason": "address"');
    }
    expect(proxy.asked).toEqual([]);
    const { socket } = await inside.connect(`[${somewhere}]:80`);
    expect(parse(await say(socket, request("/", `[${somewhere}]`)))).toMatchObject({ status: 200, body: "plain /" });
    expect(proxy.asked).toEqual([`[${somewhere}]:80`]);
  });

  test("what a rule lets be local and is; where it is public, it is asked", async () => {
    await using proxy = await openProxy();
    const port = await servers.web;
    let known = "127.0.0.1";
    const policy = policyOf([rule(host, { ports: [80, port], local: true }), rule("127.0.0.1", { ports: [port] })]);
    await using inside = behind(proxy, { resolve: async () => [known] }, policy);
    for (const name of [host, "127.0.0.1"]) {
      const { socket } = await inside.connect(`${name}:${port}`);
      expect(parse(await say(socket, request("/", `${name}:${port}`)))).toMatchObject({ status: 200 });
    }
    expect(proxy.asked).toEqual([]);
    known = somewhere;
    expect((await status(inside)).status).toBe(200);
    expect(proxy.asked).toEqual([`${host}:80`]);
  });

  test("what NO_PROXY names, which is then looked at as ever, nor for what `reach` leads elsewhere", async () => {
    await using proxy = await openProxy();
    const port = await servers.web;
    const local = policyOf([rule(host, { ports: [port], local: true })]);
    await using inside = behind(proxy, { resolve: async () => ["127.0.0.1"] }, local, ".example.com");
    const { socket } = await inside.connect(`${host}:${port}`);
    expect(parse(await say(socket, request("/", `${host}:${port}`)))).toMatchObject({ status: 200 });
    await using strict = behind(proxy, { resolve: async () => ["127.0.0.1"] }, policyOf(rules), ".example.com");
    expect((await status(strict)).body).toContain('"reason": "address"');
    const reach = policyOf(rules, { reach: { [host]: `127.0.0.1:${port}` } });
    await using led = behind(proxy, {}, reach);
    expect((await status(led)).status).toBe(200);
    expect(proxy.asked).toEqual([]);
  });
});

test("a name that nobody here knows is left to the proxy, and not asked for again at once", async () => {
  await using proxy = await openProxy();
  const looked: string[] = [];
  const resolve = async (name: string) => {
    looked.push(name);
    throw new Error("not known");
  };
  await using inside = behind(proxy, { resolve });
  expect(parse(await say(await inside.dial(host, 80), request()))).toMatchObject({ status: 200 });
  expect((await inside.secure(host)).authorized).toBe(true);
  expect(proxy.asked).toEqual([`${host}:80`, `${host}:443`]);
  expect(looked).toEqual([host]);
});

test("a name that is slow to be known is not left to the proxy: the agent may see to it that it is", async () => {
  await using proxy = await openProxy();
  const slow = policyOf([...rules, rule("*.slow.example.com")]);
  const resolve = (name: string) =>
    name === host ? Promise.resolve(["10.1.2.3"]) : new Promise<readonly string[]>(() => {});
  const limits = { dialMs: 300 };
  await using inside = behind(proxy, { resolve, limits }, slow);
  expect((await status(inside)).body).toContain('"reason": "address"');
  for (const name of ["a.slow.example.com", "b.slow.example.com"]) {
    expect((await status(inside, name)).status).toBe(502);
  }
  expect(await status(inside)).toMatchObject({ status: 502, body: expect.stringContaining("in time") });
  expect(proxy.asked).toEqual([]);
});

describe("where the proxy does not lead on, nothing else does", () => {
  const forever = () => {};
  const impostor = makeAuthority(new Date()).leafFor("127.0.0.1");
  type Case = [name: string, kind: Partial<ConnectProxyOptions>, reason: RegExp, as?: string | null];
  const cases: Case[] = [
    ["wants a name", { login }, /wants a name and a password \(407\); both are part of its address/, null],
    ["knows another name", { login }, /does not accept the name and password \(407\)/, "me:0ther-w0rd"],
    ["refuses", { places: {} }, /answered 403 when it was asked for api\.example\.com:80/],
    ["hangs up", { misbehave: (socket) => socket.destroy() }, /hung up without an answer/],
    ["ends", { misbehave: (socket) => socket.end("HTTP/1.1 200 OK\r\n") }, /hung up without an answer/],
    ["talks nonsense", { misbehave: (socket) => socket.write("220 smtp\r\n\r\n") }, /does not answer as a proxy does/],
    ["has another version", { misbehave: (socket) => socket.write("HTTP/2 200 OK\r\n\r\n") }, /as a proxy does/],
    ["says something else", { misbehave: (socket) => socket.write("HTTP/1.1 204 No\r\n\r\n") }, /answered 204/],
    [
      "has too much to say",
      { misbehave: (socket) => socket.write(`HTTP/1.1 200 OK\r\n${"X: y\r\n".repeat(4_000)}`) },
      /does not come to an end/,
    ],
    [
      "has too much to say at once",
      { misbehave: (socket) => socket.write(`HTTP/1.1 200 OK\r\nX: ${"y".repeat(20_000)}\r\n\r\n`) },
      /does not come to an end/,
    ],
    ["says nothing", { misbehave: forever }, /did not answer in time/],
    [
      "is too slow",
      { misbehave: (socket) => setInterval(() => socket.write("H"), 20).unref() },
      /did not answer in time/,
    ],
    [
      "is somebody else",
      { login, identity: { cert: impostor.certificatePem, key: impostor.keyPem } },
      /cannot be reached: /,
    ],
  ];

  test.each<Case>(cases)("as one that %s", async (_name, kind, reason, as) => {
    await using proxy = await openProxy(kind);
    const more = { limits: { dialMs: 300 } };
    await using inside = behind(proxy, more, policyOf(rules), "", as);
    const told = parse(await say(await inside.dial(host, 80), request()));
    expect(told.status).toBe(502);
    expect(JSON.parse(told.body).message).toMatch(reason);
    await expect
      .poll(() => asked(inside))
      .toMatchObject([{ verdict: "failed", host, reason: expect.stringMatching(reason) }]);
    const said = JSON.stringify(inside.audit) + told.body;
    expect(said).toContain(`the proxy ${proxy.address(null)} (network.upstream_proxy)`);
    for (const trace of [...traces, "0ther-w0rd"]) expect(said).not.toContain(trace);
    // The same at the same place, with a proxy that does.
    await using good = await openProxy();
    await using better = behind(good);
    expect(parse(await say(await better.dial(host, 80), request())).status).toBe(200);
  });

  test("as one that is not there, whatever is spoken", async () => {
    const proxy = await openProxy({ login });
    await using inside = behind(proxy, { secrets: [secret] }, policyOf(rules, { secrets: [secret] }));
    expect(parse(await say(await inside.secure(host), request())).status).toBe(200);
    const shown = proxy.address(null);
    await proxy[Symbol.asyncDispose]();
    const told = [
      parse(await say(await inside.dial(host, 80), request())),
      parse(await say(await inside.secure(host), request())),
    ];
    for (const { status, body } of told) {
      expect(status).toBe(502);
      expect(body).toContain(`the proxy ${shown} (network.upstream_proxy) cannot be reached: connect ECONNREFUSED`);
    }
    const { socket } = await inside.connect(`${host}:22`);
    expect(await readAll(socket)).toBe("");
    const said = JSON.stringify(inside.audit);
    for (const trace of traces) expect(said).not.toContain(trace);
    await expect
      .poll(() => asked(inside).map(({ verdict }) => verdict))
      .toEqual(["allowed", "failed", "failed", "failed"]);
  });
});
