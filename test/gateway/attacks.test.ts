// @module-tag security
import { afterAll, describe, expect, test } from "vitest";
import { isAmong } from "../../src/gateway/address.ts";
import { proxyPort } from "../../src/gateway/connection.ts";
import { ownNeighbourhood } from "../../src/gateway/dial.ts";
import type { NetworkRule } from "../../src/policy/network.ts";
import { bodyOf, ended, Inside, Outside, parse, policyOf, readAll, rule, say } from "./kit.ts";

const outside = new Outside();
afterAll(() => outside[Symbol.asyncDispose]());

const host = "api.example.com";
const reached: string[] = [];
const listener: Parameters<Outside["http"]>[0] = async (request, response) => {
  const body = await bodyOf(request);
  reached.push(`${request.method} ${request.headers.host} ${request.url} ${body}`);
  if (request.url === "/ok/away") response.writeHead(302, { Location: "http://no.example.com/" });
  response.end("reached");
};
const plain = outside.http(listener);
const secure = outside.https(host, listener);

interface Asked {
  readonly status: number;
  readonly reason: string;
  readonly body: string;
}

/** A gateway with a resolver that knows one public address, where nobody is, and notes who is asked for. */
class Fort extends Inside {
  static async open(rules: readonly NetworkRule[], scheme: "http" | "https" = "http"): Promise<Fort> {
    const port = scheme === "http" ? await plain : await secure;
    const reach = { [host]: `127.0.0.1:${port}`, "sub.example.com": `127.0.0.1:${port}` };
    const resolved: string[] = [];
    const resolve = async (name: string) => {
      resolved.push(name);
      return ["127.0.0.1"];
    };
    return new Fort(resolved, policyOf(rules, { reach }), resolve);
  }

  readonly resolved: string[];

  constructor(
    resolved: string[],
    policy: ReturnType<typeof policyOf>,
    resolve: (name: string) => Promise<readonly string[]>,
  ) {
    super(outside, policy, { resolve, limits: { listenMs: 30, lingerMs: 100 } });
    this.resolved = resolved;
  }

  async say(text: string, port = proxyPort): Promise<Asked> {
    const before = reached.length;
    const answer = parse(await say(await this.knock(port), text));
    const reason = /"reason": "(.*)"/.exec(answer.body)?.[1] ?? "";
    if (answer.status >= 400) expect(reached.slice(before)).toEqual([]);
    return { ...answer, reason };
  }

  get(path: string, name = host, more = ""): Promise<Asked> {
    return this.say(`GET http://${name}${path} HTTP/1.1\r\nHost: ${name}\r\n${more}Connection: close\r\n\r\n`);
  }
}

describe("a host", () => {
  test("without a rule is refused over HTTP and HTTPS, and nobody is asked where it is", async () => {
    await using fort = await Fort.open([rule(host)]);
    expect(await fort.get("/", "no.example.com")).toMatchObject({ status: 403, reason: "host" });
    const answer = await say(
      await fort.secure("no.example.com"),
      "GET / HTTP/1.1\r\nHost: no.example.com\r\nConnection: close\r\n\r\n",
    );
    expect(parse(answer).status).toBe(403);
    expect(fort.resolved).toEqual([]);
    expect(fort.audit.map(({ verdict }) => verdict)).toEqual(["refused", "refused"]);
    expect(await fort.get("/")).toMatchObject({ status: 200, body: "reached" });
  });

  test("is not the one above it or below it; capitals make no other", async () => {
    await using fort = await Fort.open([rule("*.example.com")]);
    expect(await fort.get("/", "example.com")).toMatchObject({ status: 403, reason: "host" });
    expect(await fort.get("/", "a.b.example.com")).toMatchObject({ status: 403, reason: "host" });
    expect(await fort.get("/", "SUB.Example.COM")).toMatchObject({ status: 200 });
    expect(await fort.get("/", "evil-example.com")).toMatchObject({ status: 403, reason: "host" });
    expect(await fort.get("/", "sub.example.com.evil.org")).toMatchObject({ status: 403, reason: "host" });
    expect(fort.audit[2]).toMatchObject({ host: "sub.example.com", verdict: "allowed" });
  });

  test.each([
    "api.example.com.",
    "api..example.com",
    "0x7f.0.0.1",
    "2130706433",
    "127.1",
    "[::1",
    "api.example.com:0",
    "[::ffff:7f00:1]",
    "evil.org%00.example.com",
    "evil.org%20.example.com",
    "api.example.com@evil.org",
  ])("that is spelled oddly is none: %s", async (name) => {
    await using fort = await Fort.open([rule("**"), rule(host)]);
    expect(await fort.get("/", name)).toMatchObject({ status: 400 });
    expect(fort.audit).toMatchObject([{ verdict: "refused", reason: "spelling" }]);
    expect(fort.resolved).toEqual([]);
  });

  test("that is an address is one only where a rule names it", async () => {
    await using fort = await Fort.open([rule("**")]);
    for (const name of ["127.0.0.1", "[::1]", "169.254.169.254"]) {
      expect(await fort.get("/", name)).toMatchObject({ status: 403, reason: "host" });
    }
    const port = await plain;
    await using open = await Fort.open([rule("127.0.0.1", { ports: [port] })]);
    expect(await open.get("/", `127.0.0.1:${port}`)).toMatchObject({ status: 200 });
    await using six = new Inside(outside, policyOf([rule("::1", { ports: [9] })]));
    const answer = await say(
      await six.knock(proxyPort),
      "GET http://[::1]:9/ HTTP/1.1\r\nHost: [::1]:9\r\nConnection: close\r\n\r\n",
    );
    expect(parse(answer).status).toBe(502);
    expect(six.audit).toMatchObject([{ verdict: "failed", host: "::1", port: 9 }]);
  });

  test.each([
    ["another host", `GET http://${host}/ HTTP/1.1\r\nHost: no.example.com\r\n`],
    ["two of them", `GET http://${host}/ HTTP/1.1\r\nHost: ${host}\r\nHost: no.example.com\r\n`],
    ["one twice", `GET http://${host}/ HTTP/1.1\r\nHost: ${host}\r\nHost: ${host}\r\n`],
    ["none", `GET http://${host}/ HTTP/1.1\r\n`],
    ["another port", `GET http://${host}:81/ HTTP/1.1\r\nHost: ${host}\r\n`],
    ["somebody before it", `GET http://no.example.com@${host}/ HTTP/1.1\r\nHost: ${host}\r\n`],
    ["no address at the proxy's door", `GET / HTTP/1.1\r\nHost: ${host}\r\n`],
    ["TLS that the proxy should speak", `GET https://${host}/ HTTP/1.1\r\nHost: ${host}\r\n`],
  ])("is refused where a request names %s", async (_, text) => {
    await using fort = await Fort.open([rule("**"), rule(host)]);
    expect(await fort.say(`${text}Connection: close\r\n\r\n`)).toMatchObject({ status: 400 });
    expect(fort.audit).toMatchObject([{ verdict: "refused", reason: "spelling" }]);
  });

  test("in a request is the one of the tunnel around it", async () => {
    await using fort = await Fort.open(
      [rule(host, { paths: ["/ok/**"] }), rule("sub.example.com", { paths: ["/ok/**"] })],
      "https",
    );
    const ask = async (name: string) =>
      parse(await say(await fort.secure(host), `GET /ok/1 HTTP/1.1\r\nHost: ${name}\r\nConnection: close\r\n\r\n`))
        .status;
    expect(await ask("sub.example.com")).toBe(400);
    expect(await ask(`${host}:8443`)).toBe(400);
    expect(await ask(`${host}:443`)).toBe(200);
    expect(await ask(host.toUpperCase())).toBe(200);
    await expect(fort.secure(host, { servername: "sub.example.com" })).rejects.toThrow();
    expect(fort.audit.map(({ verdict }) => verdict)).toEqual(["refused", "refused", "allowed", "allowed", "refused"]);
  });

  test("is not tunnelled to by whoever is no proxy", async () => {
    await using fort = await Fort.open([rule(host)]);
    expect(await fort.say(`CONNECT ${host}:443 HTTP/1.1\r\nHost: ${host}:443\r\n\r\n`, 80)).toMatchObject({
      status: 405,
    });
    expect(await fort.say(`CONNECT / HTTP/1.1\r\nHost: ${host}\r\n\r\n`, 80)).toMatchObject({ status: 405 });
    await using inner = await Fort.open([rule(host, { paths: ["/**"] })], "https");
    const asked = await say(await inner.secure(host), `CONNECT / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    expect(parse(asked).status).toBe(405);
    const line = { verdict: "refused", method: "CONNECT", reason: "method", status: 405 };
    expect([...fort.audit, ...inner.audit]).toMatchObject([line, line, line]);
    expect(await fort.say(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`, 80)).toMatchObject({
      status: 200,
    });
  });

  test("to which an answer leads is judged like any other", async () => {
    await using fort = await Fort.open([rule(host)]);
    expect(await fort.get("/ok/away")).toMatchObject({ status: 302 });
    expect(await fort.get("/", "no.example.com")).toMatchObject({ status: 403 });
  });
});

describe("a path", () => {
  const rules = [rule(host, { paths: ["/ok/**", "/graphql", "/messages"], methods: ["GET"] })];

  test("or a method that no rule names is refused, each for its own reason", async () => {
    await using fort = await Fort.open(rules);
    expect(await fort.get("/ok/1?x=/../no")).toMatchObject({ status: 200 });
    expect(await fort.get("/no")).toMatchObject({ status: 403, reason: "path" });
    expect(await fort.get("/graphql/more")).toMatchObject({ status: 403, reason: "path" });
    expect(await fort.get("/graphqlx")).toMatchObject({ status: 403, reason: "path" });
    const post = `POST http://${host}/ok/1 HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
    expect(await fort.say(post)).toMatchObject({ status: 403, reason: "method" });
    expect(fort.audit[0]).toMatchObject({ path: "/ok/1" });
    expect(JSON.stringify(fort.audit)).not.toContain("x=");
  });

  test.each([
    "/ok%2F1",
    "/%67raphql",
    "/messag%65s",
    "/%2567raphql",
    "/ok/../no",
    "/ok/..",
    "/ok/%2e%2e/no",
    "/ok/.%2E/no",
    "/ok/..;/no",
    "/ok/..;x=1/no",
    "/ok/\\..\\no",
    "/ok/%5c..%5cno",
    "/ok/%00",
    "/ok/a%0d%0ab",
    "/ok//no",
    "//ok/1",
    "/ok/%zz",
    "/ok/%",
  ])("that can be read otherwise is refused: %s", async (path) => {
    await using fort = await Fort.open(rules);
    expect(await fort.get(path)).toMatchObject({ status: 403, reason: "spelling" });
    expect(fort.audit).toMatchObject([{ verdict: "refused", reason: "spelling", path }]);
  });

  test.each(["/admin;x=1/x", "/admin%20/x", "/admin./x", "/admin."])(
    "that some would shorten to one that is denied is refused: %s",
    async (path) => {
      await using fort = await Fort.open([rule(host), rule(host, { paths: ["/admin/**", "/admin"], deny: true })]);
      expect(await fort.get(path)).toMatchObject({ status: 403, reason: "spelling" });
      expect(await fort.get("/admin/x")).toMatchObject({ status: 403, reason: "denied" });
      expect(await fort.get("/a.b/c%20d/")).toMatchObject({ status: 200 });
      // Where only what is allowed passes, nothing would be gained by it.
      await using other = await Fort.open([rule(host, { paths: ["/admin*/**", "/admin."] })]);
      expect(await other.get(path)).toMatchObject({ status: 200 });
    },
  );

  test.each(["/ok/#x", "/ok/\u00e4", "/ok/ x"])("that is none is refused: %j", async (path) => {
    await using fort = await Fort.open(rules);
    expect(await fort.get(path)).toMatchObject({ status: 400 });
    expect(fort.audit).toMatchObject([{ verdict: "refused", reason: "spelling" }]);
  });
});

describe("a message that two may cut differently", () => {
  const post = `POST http://${host}/ HTTP/1.1\r\nHost: ${host}\r\n`;
  const smuggled = `GET http://${host}/smuggled HTTP/1.1\r\nHost: ${host}\r\n\r\n`;

  test.each([
    ["a length and chunks", `${post}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`],
    ["two lengths", `${post}Content-Length: 0\r\nContent-Length: 5\r\n\r\nhello`],
    ["the same length twice", `${post}Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello`],
    ["a list of lengths", `${post}Content-Length: 5, 5\r\n\r\nhello`],
    ["a length with a sign", `${post}Content-Length: +5\r\n\r\nhello`],
    ["a length that is none", `${post}Content-Length: 0x5\r\n\r\nhello`],
    ["chunks that are not the last coding", `${post}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n`],
    ["chunks twice", `${post}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n`],
    ["a space before a colon", `${post}Content-Length : 5\r\n\r\nhello`],
    ["a space before a name", `${post} Content-Length: 5\r\n\r\nhello`],
    ["a folded line", `${post}X-A: 1\r\n Content-Length: 5\r\n\r\n`],
    ["a line feed alone", `${post}X-A: 1\nContent-Length: 5\r\n\r\nhello`],
    ["a carriage return alone", `${post}X-A: 1\rContent-Length: 5\r\n\r\nhello`],
    ["a NUL", `${post}X-A: 1\u0000\r\n\r\n`],
    ["a name with a NUL", `${post}X\u0000A: 1\r\n\r\n`],
    ["a version that is none", `GET http://${host}/ HTTP/9.9\r\nHost: ${host}\r\n\r\n`],
    ["no version", `GET http://${host}/\r\n\r\n`],
    ["no name", `${post}: 1\r\n\r\n`],
  ])("is refused: %s", async (_, text) => {
    await using fort = await Fort.open([rule(host)]);
    expect(await fort.say(text)).toMatchObject({ status: 400 });
    expect(fort.audit).toHaveLength(1);
    expect(fort.audit).toMatchObject([{ verdict: "refused", reason: "spelling", status: 400 }]);
    expect(reached.join()).not.toContain("smuggled");
  });

  test("is not one with a single length, or chunks alone", async () => {
    await using fort = await Fort.open([rule(host)]);
    expect(await fort.say(`${post}Connection: close\r\nContent-Length: 5\r\n\r\nhello`)).toMatchObject({ status: 200 });
    const chunks = `${post}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`;
    expect(await fort.say(chunks)).toMatchObject({ status: 200 });
    expect(reached.slice(-2)).toEqual([`POST ${host} / hello`, `POST ${host} / hello`]);
  });

  test("chunks with endless words about them are broken off", async () => {
    await using fort = await Fort.open([rule(host)]);
    const socket = await fort.knock(proxyPort);
    socket.write(`${post}Transfer-Encoding: chunked\r\n\r\n5;`);
    const noise = setInterval(() => socket.write("x".repeat(10_000)), 1);
    await ended(socket);
    clearInterval(noise);
    await expect.poll(() => fort.audit).toMatchObject([{ verdict: "failed" }]);
  });

  test("a tunnel cannot be asked for behind a request that is not answered yet", async () => {
    const port = await outside.http(() => {});
    await using inside = new Inside(outside, policyOf([rule(host)], { reach: { [host]: `127.0.0.1:${port}` } }));
    const answer = await say(
      await inside.knock(proxyPort),
      `GET http://${host}/ HTTP/1.1\r\nHost: ${host}\r\n\r\nCONNECT ${host}:443 HTTP/1.1\r\nHost: ${host}:443\r\n\r\n`,
    );
    expect(answer).toBe("");
    await expect.poll(() => inside.audit.map(({ verdict }) => verdict).sort()).toEqual(["failed", "refused"]);
  });
});

describe("a name that leads into the house", () => {
  const ask = async (inside: Inside, port = 80) =>
    parse(
      await say(
        await inside.knock(proxyPort),
        `GET http://name.example.com:${port}/ HTTP/1.1\r\nHost: name.example.com:${port}\r\nConnection: close\r\n\r\n`,
      ),
    );

  test.each([
    "127.0.0.1",
    "10.1.2.3",
    "192.168.0.1",
    "172.16.0.1",
    "169.254.169.254",
    "169.254.1.1",
    "100.64.0.1",
    "0.0.0.0",
    "::1",
    "fe80::1",
    "fd00::1",
    "::ffff:127.0.0.1",
    "64:ff9b::7f00:1",
    "255.255.255.255",
    "not an address",
  ])("is refused: %s", async (address) => {
    const policy = policyOf([rule("name.example.com", { ports: [80, 22] })]);
    await using inside = new Inside(outside, policy, { resolve: async () => [address], limits: { listenMs: 10 } });
    const { status, body } = await ask(inside);
    if (address === "not an address") expect(status).toBe(502);
    else expect([status, JSON.parse(body)]).toMatchObject([403, { code: "NETWORK_DENIED", reason: "address" }]);
    const { socket } = await inside.connect("name.example.com:22");
    await ended(socket);
    const expected = address === "not an address" ? { verdict: "failed" } : { verdict: "refused", reason: "address" };
    await expect.poll(() => inside.audit).toMatchObject([expected, expected]);
  });

  test.each(["93.184.215.14", "93.184.215.77", "::ffff:93.184.215.77", "2606:2800:21f::7"])(
    "is refused also where the house has public addresses: %s",
    async (address) => {
      const neighbourhood = () => ["127.0.0.1/8", "93.184.215.14/24", "2606:2800:21f::1/64"];
      const policy = policyOf([rule("name.example.com")]);
      await using inside = new Inside(outside, policy, { resolve: async () => [address], neighbourhood });
      expect(await ask(inside)).toMatchObject({ status: 403, body: expect.stringContaining("a neighbouring address") });
      expect(inside.audit).toMatchObject([{ verdict: "refused", reason: "address" }]);
    },
  );

  test("is dialled in the neighbourhood, too, where its rule says so", async () => {
    const port = await plain;
    expect(ownNeighbourhood()().some((network) => isAmong([network], "127.0.0.1"))).toBe(true);
    const policy = policyOf([rule("name.example.com", { ports: [port], local: true })]);
    await using inside = new Inside(outside, policy, { resolve: async () => ["127.0.0.1"] });
    expect(await ask(inside, port)).toMatchObject({ status: 200, body: "reached" });
  });

  test("is told with its scheme and its port", async () => {
    const policy = policyOf([rule("name.example.com", { ports: [80, 8080] })]);
    await using inside = new Inside(outside, policy, { resolve: async () => ["127.0.0.1"] });
    expect((await ask(inside, 8080)).body).toContain("GET http://name.example.com:8080/ is not allowed");
    expect((await ask(inside)).body).toContain("GET http://name.example.com/ is not allowed");
  });

  test("is dialled where its rule says so, at the address that was looked at", async () => {
    const port = await plain;
    const answers = [["127.0.0.1"], ["10.255.255.1"]];
    const policy = policyOf([rule("name.example.com", { ports: [port], local: true })]);
    await using inside = new Inside(outside, policy, { resolve: async () => answers.shift() ?? [] });
    expect(await ask(inside, port)).toMatchObject({ status: 200, body: "reached" });
    expect(answers).toHaveLength(1);
  });

  test("is asked for once, so that an answer which changes changes nothing", async () => {
    const port = await plain;
    const asked: number[] = [];
    const policy = policyOf([rule("name.example.com", { ports: [port] })]);
    await using inside = new Inside(outside, policy, {
      // Another one for whoever would ask again.
      resolve: async () => (asked.push(1) === 1 ? ["::2"] : ["127.0.0.1"]),
    });
    expect((await ask(inside, port)).status).toBe(403);
    expect(asked).toHaveLength(1);
    expect((await ask(inside, port)).status).toBe(403);
  });

  test("by an address of the owner's choice is dialled there, also after another policy was set", async () => {
    const port = await plain;
    await using inside = new Inside(outside, policyOf([]), {
      resolve: async () => {
        throw new Error("nobody should ask");
      },
    });
    expect((await ask(inside)).status).toBe(403);
    const reach = { "name.example.com": `127.0.0.1:${port}` };
    inside.gateway.replacePolicy(policyOf([rule("name.example.com")], { reach }));
    expect(await ask(inside)).toMatchObject({ status: 200, body: "reached" });
    inside.gateway.replacePolicy(
      policyOf([rule("name.example.com")], { reach: { "name.example.com": `[::1]:${port}` } }),
    );
    expect((await ask(inside)).status).not.toBe(403);
  });
});

test("a certificate of nobody's, or for somebody else, is not believed", async () => {
  const port = await outside.tls("other.example.com", (socket) => socket.end("HTTP/1.1 200 OK\r\n\r\n"));
  const stranger = new Outside();
  const strange = await stranger.https(host, (_, response) => response.end("strange"));
  for (const at of [port, strange]) {
    const policy = policyOf([rule(host, { methods: ["GET"] })], { reach: { [host]: `127.0.0.1:${at}` } });
    await using inside = new Inside(outside, policy);
    const socket = await inside.secure(host);
    socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    expect(parse(await readAll(socket))).toMatchObject({ status: 502 });
    socket.destroy();
    expect(inside.audit).toMatchObject([
      { verdict: "failed", reason: expect.stringContaining("does not prove who it is") },
    ]);
  }
  await stranger[Symbol.asyncDispose]();
  const nonsense = await outside.tcp((socket) => socket.end("SSH-2.0-x\r\n"));
  const policy = policyOf([rule(host, { methods: ["GET"] })], { reach: { [host]: `127.0.0.1:${nonsense}` } });
  await using inside = new Inside(outside, policy);
  await say(await inside.secure(host), `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  expect(inside.audit).toMatchObject([
    { verdict: "failed", reason: expect.stringContaining("does not speak TLS with us") },
  ]);
});
