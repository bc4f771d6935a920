// @module-tag security
import { connect as connectHttp2 } from "node:http2";
import { gzipSync } from "node:zlib";
import { afterAll, describe, expect, test } from "vitest";
import { proxyPort } from "../../src/gateway/connection.ts";
import type { MaskedSecret } from "../../src/gateway/masking.ts";
import { bodyOf, Inside, Outside, parse, policyOf, readUntil, rule, say } from "./kit.ts";

const outside = new Outside();
afterAll(() => outside[Symbol.asyncDispose]());

const host = "api.example.com";
const other = "other.example.com";
const real = "sk-real-0123456789abcdef";
const surrogate = "sk-fake-fedcba9876543210";
const secret: MaskedSecret = {
  name: "KEY",
  real,
  surrogate,
  hosts: [host],
  headers: ["authorization", "x-api-key"],
  paths: ["/v1/**"],
};

/** What the last request held, as the world has seen it. */
let seen: { headers: readonly string[]; url: string; body: string } = { headers: [], url: "", body: "" };

/** Tells back everything it was told. */
const echo = (name: string) =>
  outside.https(name, async (request, response) => {
    seen = { headers: request.rawHeaders, url: request.url as string, body: await bodyOf(request) };
    const told = `${request.headers.authorization} ${request.headers["x-api-key"]} ${request.url} ${seen.body}`;
    response.sendDate = false;
    response.setHeader("X-Told", `${request.headers.authorization}`);
    if (request.url === "/v1/gzip") return response.setHeader("Content-Encoding", "gzip").end(gzipSync(told));
    if (request.url === "/v1/coded") {
      response.setHeader("Transfer-Encoding", "gzip, chunked");
      return response.end(gzipSync(told));
    }
    if (request.url === "/v1/split") {
      for (const letter of told) {
        response.write(letter);
        await new Promise((resolve) => setImmediate(resolve));
      }
      response.addTrailers({ "X-Trailing": `${request.headers.authorization}` });
      return response.end();
    }
    if (request.url === "/v1/part" && request.headers.range !== undefined) {
      return response.writeHead(206).end(told.slice(0, 20));
    }
    response.end(told);
  });
const apis = { [host]: echo(host), [other]: echo(other) };
const plain = outside.http((request, response) => response.end(`${request.headers.authorization}`));

const policy = async () =>
  policyOf([rule(host), rule(other)], {
    secrets: [secret],
    reach: { [host]: `127.0.0.1:${await apis[host]}`, [other]: `127.0.0.1:${await apis[other]}` },
  });

async function leading(): Promise<Inside> {
  const inside = new Inside(outside, await policy(), { secrets: [secret] });
  inside.believed = [outside.authority.certificatePem];
  return inside;
}

async function ask(inside: Inside, path: string, headers: string, { name = host, body = "" } = {}) {
  const length = body === "" ? "" : `Content-Length: ${body.length}\r\n`;
  const text = `${body === "" ? "GET" : "POST"} ${path} HTTP/1.1\r\nHost: ${name}\r\n${headers}${length}Connection: close\r\n\r\n${body}`;
  const answer = await say(await inside.secure(name), text);
  // Whatever is asked, and however it fails.
  expect(answer).not.toContain(real);
  expect(JSON.stringify(inside.audit)).not.toContain(real);
  return parse(answer);
}

const values = (name: string) =>
  seen.headers.flatMap((each, at) => (at % 2 === 0 && each.toLowerCase() === name ? [seen.headers[at + 1]] : []));

describe("a surrogate", () => {
  test("is replaced where it belongs, and what comes back is turned back", async () => {
    await using inside = await leading();
    const { status, body, head } = await ask(inside, "/v1/x", `Authorization: Bearer ${surrogate}\r\n`);
    expect(status).toBe(200);
    expect(values("authorization")).toEqual([`Bearer ${real}`]);
    expect(values("accept-encoding")).toEqual(["identity"]);
    expect(body).toContain(`Bearer ${surrogate}`);
    expect(head).toContain(`X-Told: Bearer ${surrogate}`);
    expect(inside.audit).toMatchObject([{ verdict: "allowed", masked: 1, stripped: 0 }]);
  });

  test("is replaced by what the secret is by then, where that is another", async () => {
    let secrets = [secret];
    const inside = new Inside(outside, await policy(), {
      get secrets() {
        return secrets;
      },
    });
    await using _ = inside;
    inside.believed = [outside.authority.certificatePem];
    const bearer = `Authorization: Bearer ${surrogate}\r\n`;
    await ask(inside, "/v1/x", bearer);
    expect(values("authorization")).toEqual([`Bearer ${real}`]);
    const next = "sk-next-0123456789abcdef";
    secrets = [{ ...secret, real: next }];
    const { body } = await ask(inside, "/v1/x", bearer);
    expect(values("authorization")).toEqual([`Bearer ${next}`]);
    expect(body).toContain(`Bearer ${surrogate}`);
  });

  test("in Basic is replaced as user and as password", async () => {
    await using inside = await leading();
    for (const words of [`${surrogate}:x-oauth-basic`, `git:${surrogate}`]) {
      const encoded = Buffer.from(words).toString("base64");
      await ask(inside, "/v1/x", `Authorization: Basic ${encoded}\r\n`);
      const [sent] = values("authorization") as [string];
      expect(Buffer.from(sent.slice(6), "base64").toString()).toBe(words.replace(surrogate, real));
    }
  });

  test("stays one on another host, path, header, in the query and in the body", async () => {
    await using inside = await leading();
    const bearer = `Authorization: Bearer ${surrogate}\r\n`;
    await ask(inside, "/v1/x", bearer, { name: other });
    expect(values("authorization")).toEqual([`Bearer ${surrogate}`]);
    await ask(inside, "/v2/x", bearer);
    expect(values("authorization")).toEqual([`Bearer ${surrogate}`]);
    await ask(inside, `/v1/x?key=${surrogate}`, `X-Other: ${surrogate}\r\n`, { body: surrogate });
    expect([values("x-other"), seen.url, seen.body]).toEqual([[surrogate], `/v1/x?key=${surrogate}`, surrogate]);
    expect(inside.audit.slice(1)).toMatchObject([{ masked: 0 }, { masked: 0 }]);
    expect(JSON.stringify(inside.audit)).not.toContain("key=");
  });

  test("stays one over plain HTTP", async () => {
    const reach = { [host]: `127.0.0.1:${await plain}` };
    await using inside = new Inside(outside, policyOf([rule(host)], { secrets: [secret], reach }), {
      secrets: [secret],
    });
    const answer = await say(
      await inside.knock(proxyPort),
      `GET http://${host}/v1/x HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${surrogate}\r\nConnection: close\r\n\r\n`,
    );
    expect(parse(answer).body).toBe(`Bearer ${surrogate}`);
  });

  test("is replaced in HTTP/2, too", async () => {
    let authorization: unknown;
    const port = await outside.http2(host, (stream, headers) => {
      authorization = headers["authorization"];
      stream.respond({ ":status": 200, "x-told": `${authorization}` }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "x-trailing": `${authorization}` }));
      stream.end(`${authorization}`);
    });
    const bound = policyOf([rule(host)], { secrets: [secret], reach: { [host]: `127.0.0.1:${port}` } });
    await using inside = new Inside(outside, bound, { secrets: [secret] });
    const socket = await inside.secure(host, { alpn: ["h2"] });
    const client = connectHttp2(`https://${host}`, { createConnection: () => socket });
    const stream = client.request({ ":path": "/v1/x", authorization: `Bearer ${surrogate}` });
    const told: string[] = [];
    stream.on("response", (headers) => told.push(`${headers["x-told"]}`));
    stream.on("data", (bytes: Buffer) => told.push(`${bytes}`));
    stream.on("trailers", (headers) => told.push(`${headers["x-trailing"]}`));
    await new Promise((resolve) => stream.once("close", resolve));
    client.close();
    expect(authorization).toBe(`Bearer ${real}`);
    expect(told).toEqual([`Bearer ${surrogate}`, `Bearer ${surrogate}`, `Bearer ${surrogate}`]);
  });
});

describe("a credential on a host that a secret is bound to", () => {
  test("that is not ours is taken out", async () => {
    await using inside = await leading();
    await ask(inside, "/v1/x", "Authorization: Bearer mine\r\nX-Api-Key: mine\r\nX-Other: mine\r\n");
    expect([values("authorization"), values("x-api-key"), values("x-other")]).toEqual([[], [], ["mine"]]);
    expect(inside.audit).toMatchObject([{ verdict: "allowed", masked: 0, stripped: 2 }]);
  });

  test.each([0, 1, 2])("is there once, wherever the surrogate stands (%i)", async (place) => {
    await using inside = await leading();
    const all = ["mine", "yours", "theirs"].map((word, at) => (at === place ? surrogate : word));
    await ask(inside, "/v1/x", all.map((word) => `Authorization: Bearer ${word}\r\n`).join(""));
    expect(values("authorization")).toEqual([`Bearer ${real}`]);
    expect(inside.audit).toMatchObject([{ masked: 1, stripped: 2 }]);
  });
});

describe("an answer", () => {
  const bearer = `Authorization: Bearer ${surrogate}\r\n`;

  test("that tells a secret in pieces, or after its end, is still found out", async () => {
    await using inside = await leading();
    const text = `GET /v1/split HTTP/1.1\r\nHost: ${host}\r\n${bearer}Connection: close\r\n\r\n`;
    const answer = await say(await inside.secure(host), text);
    expect(answer).not.toContain(real);
    expect(parse(answer).body).toContain(`Bearer ${surrogate} `);
    expect(answer).toContain(`X-Trailing: Bearer ${surrogate}\r\n`);
  });

  test.each(["/v1/gzip", "/v1/coded"])("that is encoded although it should not be is kept back: %s", async (path) => {
    await using inside = await leading();
    const { status, body, head } = await ask(inside, path, `${bearer}Accept-Encoding: gzip\r\n`);
    expect(status).toBe(502);
    expect(JSON.parse(body)).toMatchObject({ code: "NETWORK_FAILED" });
    expect(head).not.toContain("X-Told");
    expect(inside.audit).toMatchObject([{ verdict: "failed", status: 502, masked: 1 }]);
    expect((await ask(inside, path, "", { name: other })).status).toBe(200);
  });

  test("cannot be had in parts that each hide something", async () => {
    await using inside = await leading();
    const { status, body } = await ask(inside, "/v1/part", `${bearer}Range: bytes=0-19\r\n`);
    expect([status, body.includes(surrogate)]).toEqual([200, true]);
  });

  test("over a WebSocket is searched, too", async () => {
    const port = await outside.tls(host, (socket) => {
      socket.once("data", (bytes) => {
        const asked = `${bytes}`;
        const extensions = /sec-websocket-extensions/i.test(asked);
        socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
        socket.write(`extensions ${extensions}; ${/Bearer \S+/.exec(asked)?.[0].slice(0, 20)}`);
        setTimeout(() => socket.write(`${/Bearer \S+/.exec(asked)?.[0].slice(20)}.`), 20);
      });
    });
    const bound = policyOf([rule(host)], { secrets: [secret], reach: { [host]: `127.0.0.1:${port}` } });
    await using inside = new Inside(outside, bound, { secrets: [secret] });
    const socket = await inside.secure(host);
    socket.write(
      `GET /v1/ws HTTP/1.1\r\nHost: ${host}\r\n${bearer}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n`,
    );
    expect(await readUntil(socket, `${surrogate}.`)).toContain(`extensions false; Bearer ${surrogate}.`);
    socket.destroy();
  });
});

test("a host that a secret is bound to is opened although no rule looks into it, also where only the gateway knows", async () => {
  await using inside = new Inside(outside, { ...(await policy()), secrets: [] }, { secrets: [secret] });
  await ask(inside, "/v1/x", `Authorization: Bearer ${surrogate}\r\n`);
  expect(values("authorization")).toEqual([`Bearer ${real}`]);
});
