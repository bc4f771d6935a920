import { X509Certificate } from "node:crypto";
import { afterAll, describe, expect, test } from "vitest";
import { proxyPort } from "../../src/gateway/connection.ts";
import { bodyOf, Inside, Outside, policyOf, readUntil, rule, say } from "./kit.ts";

const outside = new Outside();
afterAll(() => outside[Symbol.asyncDispose]());

const echo = outside.http(async (request, response) => {
  const body = await bodyOf(request);
  response.end(JSON.stringify({ method: request.method, url: request.url, host: request.headers.host, body }));
});
const secureEcho = outside.https("api.example.com", async (request, response) => {
  const body = await bodyOf(request);
  response.end(JSON.stringify({ method: request.method, url: request.url, headers: request.headers, body }));
});

const close = "Connection: close\r\n\r\n";
const reach = async () => ({
  "plain.example.com": `127.0.0.1:${await echo}`,
  "api.example.com": `127.0.0.1:${await secureEcho}`,
});

describe("a request at the proxy's door", () => {
  test("that a rule allows is answered by the world", async () => {
    await using inside = new Inside(outside, policyOf([rule("plain.example.com")], { reach: await reach() }));
    const answer = await say(
      await inside.knock(proxyPort),
      `POST http://plain.example.com/a?b=c HTTP/1.1\r\nHost: plain.example.com\r\nContent-Length: 2\r\n${close.replace("\r\n\r\n", "\r\n")}\r\nhi`,
    );
    expect(answer).toMatch(/^HTTP\/1.1 200 OK\r\n/);
    expect(JSON.parse(answer.slice(answer.indexOf("{")).replace(/\r\n0\r\n\r\n$/, ""))).toEqual({
      method: "POST",
      url: "/a?b=c",
      host: "plain.example.com",
      body: "hi",
    });
    expect(inside.audit).toMatchObject([
      {
        kind: "http",
        verdict: "allowed",
        host: "plain.example.com",
        port: 80,
        method: "POST",
        path: "/a",
        status: 200,
        rule: "rule for plain.example.com",
        sent: 2,
      },
    ]);
  });

  test("that no rule allows is refused in words, and nobody is dialled", async () => {
    await using inside = new Inside(outside, policyOf([], { reach: await reach() }));
    const answer = await say(
      await inside.knock(proxyPort),
      `GET http://plain.example.com/ HTTP/1.1\r\nHost: plain.example.com\r\n${close}`,
    );
    expect(answer).toMatch(/^HTTP\/1.1 403 Forbidden\r\n/);
    expect(JSON.parse(answer.slice(answer.indexOf("{")))).toMatchObject({
      code: "NETWORK_DENIED",
      reason: "host",
      host: "plain.example.com",
      path: "/",
      method: "GET",
    });
    expect(inside.audit).toMatchObject([{ verdict: "refused", reason: "host" }]);
  });
});

describe("a tunnel", () => {
  test("is joined as it is where no rule looks into it", async () => {
    await using inside = new Inside(outside, policyOf([rule("api.example.com")], { reach: await reach() }));
    inside.believed = [outside.authority.certificatePem];
    const secure = await inside.secure("api.example.com");
    const worlds = new X509Certificate(outside.authority.certificatePem);
    expect(new X509Certificate(secure.getPeerCertificate().raw).verify(worlds.publicKey)).toBe(true);
    const answer = await say(secure, `GET /x HTTP/1.1\r\nHost: api.example.com\r\n${close}`);
    expect(answer).toContain('"url":"/x"');
    await expect.poll(() => inside.audit).toMatchObject([{ kind: "tls", verdict: "allowed", host: "api.example.com" }]);
  });

  test("is opened where a rule names paths: each request is judged", async () => {
    await using inside = new Inside(
      outside,
      policyOf([rule("api.example.com", { paths: ["/ok/**"] })], { reach: await reach() }),
    );
    const secure = await inside.secure("api.example.com");
    secure.write("GET /ok/1 HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
    expect(await readUntil(secure, "}")).toContain('"url":"/ok/1"');
    const answer = await say(secure, `GET /no HTTP/1.1\r\nHost: api.example.com\r\n${close}`);
    expect(answer).toContain('"reason": "path"');
    expect(inside.audit).toMatchObject([
      { kind: "http", scheme: "https", verdict: "allowed", path: "/ok/1", status: 200 },
      { kind: "http", scheme: "https", verdict: "refused", path: "/no", status: 403 },
    ]);
  });

  test("to a host without a rule is opened to say so", async () => {
    await using inside = new Inside(outside, policyOf([]));
    const answer = await say(
      await inside.secure("api.example.com"),
      `GET /no HTTP/1.1\r\nHost: api.example.com\r\n${close}`,
    );
    expect(answer).toMatch(/^HTTP\/1.1 403/);
    expect(answer).toContain('"reason": "host"');
  });
});

test("whoever speaks HTTP to an allowed host that cannot be reached is told so, and what failed", async () => {
  const resolve = async (host: string) => {
    if (host === "inside.example.com") return ["127.0.0.1"];
    throw new Error("nobody knows it");
  };
  const rules = [rule("gone.example.com"), rule("inside.example.com")];
  await using inside = new Inside(outside, policyOf(rules), { resolve });
  const ask = async (host: string) => say(await inside.secure(host), `GET /x HTTP/1.1\r\nHost: ${host}\r\n${close}`);
  expect(await ask("gone.example.com")).toMatch(/^HTTP\/1.1 502 .*nobody knows it/s);
  expect(await ask("inside.example.com")).toMatch(/^HTTP\/1.1 403 .*"reason": "address"/s);
  await expect
    .poll(() => inside.audit)
    .toMatchObject([
      { kind: "http", verdict: "failed", host: "gone.example.com", status: 502 },
      { kind: "http", verdict: "refused", host: "inside.example.com", status: 403, reason: "address" },
    ]);
});
