// @module-tag security
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type OutgoingHttpHeaders,
} from "node:http2";
import { afterAll, describe, expect, test } from "vitest";
import { bodyOf, Inside, Outside, parse, policyOf, rule, say } from "./kit.ts";
import { answerRaw } from "./raw-http2.ts";

const outside = new Outside();
afterAll(() => outside[Symbol.asyncDispose]());

const host = "api.example.com";

async function leading(port: number, more: ConstructorParameters<typeof Inside>[2] = {}): Promise<Inside> {
  const reach = { [host]: `127.0.0.1:${port}` };
  return new Inside(outside, policyOf([rule(host, { paths: ["/ok/**"] })], { reach }), more);
}

/** HTTP/2 with the gateway, as a box speaks it. */
async function session(inside: Inside): Promise<ClientHttp2Session> {
  const socket = await inside.secure(host, { alpn: ["h2"] });
  return connect(`https://${host}`, { createConnection: () => socket }).on("error", () => {});
}

interface Answer {
  readonly status: unknown;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly trailers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

function answerOf(stream: ClientHttp2Stream): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let headers: Record<string, unknown> = {};
    let trailers: Record<string, unknown> = {};
    let body = "";
    stream.on("response", (all) => {
      headers = { ...all };
    });
    stream.on("trailers", (all) => {
      trailers = { ...all };
    });
    stream.on("data", (bytes: Buffer) => {
      body += bytes;
    });
    stream.on("error", reject);
    stream.on("close", () => resolve({ status: headers[":status"], headers, trailers, body }));
  });
}

function ask(client: ClientHttp2Session, headers: OutgoingHttpHeaders, body?: string): Promise<Answer> {
  const stream = client.request(headers, { endStream: body === undefined });
  if (body !== undefined) stream.end(body);
  return answerOf(stream);
}

describe("HTTP/2 on both sides", () => {
  test("carries messages both ways as they come, and what follows them", async () => {
    const port = await outside.http2(host, (stream, headers) => {
      stream.respond(
        { ":status": 200, "content-type": "application/grpc", "x-te": `${headers["te"]}` },
        { waitForTrailers: true },
      );
      stream.on("data", (bytes: Buffer) => stream.write(`re: ${bytes}`));
      stream.on("end", () => stream.end());
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0", "grpc-message": "fine" }));
    });
    await using inside = await leading(port);
    const client = await session(inside);
    const stream = client.request({ ":method": "POST", ":path": "/ok/Service/Call", te: "trailers" });
    const answer = answerOf(stream);
    for (const word of ["one", "two"]) {
      const echo = new Promise((resolve) => stream.once("data", (bytes: Buffer) => resolve(`${bytes}`)));
      stream.write(word);
      expect(await echo).toBe(`re: ${word}`);
    }
    stream.end();
    expect(await answer).toMatchObject({
      status: 200,
      headers: { "content-type": "application/grpc", "x-te": "trailers" },
      trailers: { "grpc-status": "0", "grpc-message": "fine" },
      body: "re: onere: two",
    });
    client.close();
    await expect
      .poll(() => inside.audit)
      .toMatchObject([
        {
          kind: "http",
          scheme: "https",
          method: "POST",
          path: "/ok/Service/Call",
          verdict: "allowed",
          sent: 6,
          received: 14,
          status: 200,
        },
      ]);
  });

  test("carries many streams over one connection outside, and each is judged for itself", async () => {
    const sessions = new Set<unknown>();
    const port = await outside.http2(host, (stream, headers) => {
      sessions.add(stream.session);
      stream.respond({ ":status": 200 });
      stream.end(`${headers[":path"]}`.repeat(500));
    });
    await using inside = await leading(port);
    const client = await session(inside);
    const paths = Array.from({ length: 300 }, (_, at) => (at % 10 === 9 ? `/no/${at}` : `/ok/${at}`));
    const answers = await Promise.all(paths.map((path) => ask(client, { ":path": path })));
    for (const [at, { status, body }] of answers.entries()) {
      if (at % 10 === 9) expect([status, body]).toEqual([403, expect.stringContaining('"reason": "path"')]);
      else expect([status, body]).toEqual([200, (paths[at] as string).repeat(500)]);
    }
    client.close();
    expect(sessions.size).toBe(1);
    expect(inside.audit).toHaveLength(300);
  });

  test("keeps cookies and other headers together", async () => {
    const port = await outside.http2(host, (stream, headers) => {
      stream.respond({ ":status": 200, "set-cookie": ["a=1", "b=2"], "x-cookie": `${headers["cookie"]}` });
      stream.end();
    });
    await using inside = await leading(port);
    const client = await session(inside);
    const { headers } = await ask(client, { ":path": "/ok/", cookie: ["x=1", "y=2"] });
    client.close();
    expect(headers).toMatchObject({ "set-cookie": ["a=1", "b=2"], "x-cookie": "x=1; y=2" });
  });

  test("a stream that is reset outside is reset inside, and the other way round", async () => {
    let gone: Promise<unknown> = Promise.resolve();
    const port = await outside.http2(host, (stream, headers) => {
      stream.on("error", () => {});
      if (headers[":path"] === "/ok/reset") {
        // Otherwise Node would end it properly first.
        stream.respond({ ":status": 200 }, { waitForTrailers: true });
        stream.write("part");
        setTimeout(() => stream.close(constants.NGHTTP2_INTERNAL_ERROR), 20);
      } else gone = new Promise((resolve) => stream.once("close", resolve));
    });
    await using inside = await leading(port);
    const client = await session(inside);
    await expect(ask(client, { ":path": "/ok/reset" })).rejects.toThrow();
    const stream = client.request({ ":path": "/ok/wait" }).on("error", () => {});
    await new Promise((resolve) => setTimeout(resolve, 50));
    stream.close(constants.NGHTTP2_CANCEL);
    await gone;
    client.close();
    await expect
      .poll(() => inside.audit)
      .toMatchObject([
        { verdict: "failed", status: 200, received: 4 },
        { verdict: "failed", reason: "the box has broken it off" },
      ]);
  });

  test("a session that has ended outside is replaced", async () => {
    let sessions = 0;
    const port = await outside.http2(host, (stream) => {
      stream.respond({ ":status": 200 });
      stream.end("ok");
      stream.once("close", () => stream.session?.close());
      sessions += 1;
    });
    await using inside = await leading(port);
    const client = await session(inside);
    for (let at = 0; at < 3; at++) expect((await ask(client, { ":path": "/ok/" })).body).toBe("ok");
    client.close();
    expect(sessions).toBe(3);
  });
});

describe("of a server that names a long header again and again, nothing is kept", () => {
  type Heads = Parameters<typeof answerRaw>[1];
  const repeated = (times: number, head: Heads[number]): Heads => Array.from({ length: times }, () => head);
  const asked = async (heads: Heads) => {
    const port = await outside.tls(host, (socket) => answerRaw(socket, heads), { ALPNProtocols: ["h2"] });
    await using inside = await leading(port);
    const client = await session(inside);
    const answers = [];
    for (let number = 0; number < 2; number++) {
      const answer = await ask(client, { ":path": "/ok/x" }).catch((error) => ({ error, status: 0, trailers: {} }));
      answers.push([answer.status, Object.keys(answer.trailers).length]);
    }
    client.destroy();
    return { answers, audit: inside.audit };
  };

  test("if it fits, it passes, before the answer, in it and behind it", async () => {
    const { answers } = await asked([
      { status: 103, repeats: 1 },
      { status: 200, repeats: 3 },
      { status: null, repeats: 3 },
    ]);
    expect(answers).toEqual([
      [200, 1],
      [200, 1],
    ]);
  });

  test.each<[string, Heads]>([
    ["in the answer", [{ status: 200, repeats: 200 }]],
    [
      "before it",
      [
        { status: 103, repeats: 200 },
        { status: 200, repeats: 0 },
      ],
    ],
    ["before it, in many", [...repeated(12, { status: 103, repeats: 1 }), { status: 200, repeats: 0 }]],
    [
      "before it, without anything, too often",
      [...repeated(17, { status: 103, repeats: 0 }), { status: 200, repeats: 0 }],
    ],
  ])("%s: the request fails", async (_where, heads) => {
    const { answers } = await asked([...heads, { status: null, repeats: 1 }]);
    expect(answers).toEqual([
      [502, 0],
      [502, 0],
    ]);
  });

  test("behind it: the stream is broken off", async () => {
    const { audit } = await asked([
      { status: 200, repeats: 0 },
      { status: null, repeats: 200 },
    ]);
    expect(audit).toMatchObject([{ verdict: "failed" }, { verdict: "failed" }]);
  });
});

describe("HTTP/2 inside", () => {
  test("is answered where only HTTP/1.1 is spoken outside", async () => {
    const port = await outside.https(host, async (request, response) => {
      const body = await bodyOf(request);
      response.writeHead(200, { "Set-Cookie": ["a=1", "b=2"] });
      response.write(`${request.httpVersion} ${request.headers.host} ${request.headers.cookie} ${body}`);
      response.addTrailers({ "x-sum": "7" });
      response.end();
    });
    await using inside = await leading(port);
    const client = await session(inside);
    const answer = await ask(client, { ":method": "POST", ":path": "/ok/", cookie: ["x=1", "y=2"] }, "hello");
    expect(answer).toMatchObject({
      status: 200,
      body: "1.1 api.example.com:443 x=1; y=2 hello",
      headers: { "set-cookie": ["a=1", "b=2"] },
      trailers: { "x-sum": "7" },
    });
    expect(answer.headers).not.toHaveProperty("connection");
    expect((await ask(client, { ":method": "HEAD", ":path": "/ok/" })).status).toBe(200);
    client.close();
    expect(inside.audit).toMatchObject([
      { sent: 5, status: 200 },
      { method: "HEAD", status: 200 },
    ]);
  });

  test("is refused where it does not say one thing about where it leads, or asks for a tunnel", async () => {
    const port = await outside.http2(host, (stream) => {
      stream.respond({ ":status": 200 });
      stream.end("reached");
    });
    await using inside = await leading(port, { limits: { lingerMs: 50 } });
    const client = await session(inside);
    const odd: OutgoingHttpHeaders[] = [
      { ":path": "/ok/", host: "other.example.com" },
      { ":path": "/ok/", ":authority": "other.example.com" },
      { ":path": "/ok/", ":authority": `${host}:444` },
      { ":path": "/ok/", ":authority": `user@${host}` },
      { ":path": "/ok/\u00e4" },
      { ":method": "OPTIONS", ":path": "*" },
    ];
    for (const headers of odd) expect(await ask(client, headers)).toMatchObject({ status: 400 });
    expect(await ask(client, { ":path": "/ok/", host })).toMatchObject({ status: 200, body: "reached" });
    const tunnel = client.request({ ":method": "CONNECT", ":authority": `${host}:443` });
    expect(await answerOf(tunnel)).toMatchObject({ status: 405 });
    // On the way out it would be written in capitals.
    expect(await ask(client, { ":method": "connect", ":path": "/ok/" })).toMatchObject({ status: 405 });
    client.close();
    expect(inside.audit.map(({ verdict }) => verdict)).toEqual([
      ...odd.map(() => "refused"),
      "allowed",
      "refused",
      "refused",
    ]);
  });

  test("a body that goes on after the answer is told of when it has ended", async () => {
    let heard = "";
    const port = await outside.http2(host, (stream) => {
      stream
        .on("error", () => {})
        .on("data", (bytes: Buffer) => {
          heard += bytes;
        });
      stream.respond({ ":status": 200 });
      stream.end("early");
    });
    await using inside = await leading(port);
    const client = await session(inside);
    const stream = client.request({ ":method": "POST", ":path": "/ok/" });
    stream.write("01234");
    await new Promise((resolve) => stream.resume().once("end", resolve));
    expect(inside.audit).toEqual([]);
    stream.end("56789");
    await expect.poll(() => inside.audit).toMatchObject([{ verdict: "allowed", status: 200, sent: 10 }]);
    await expect.poll(() => heard).toBe("0123456789");
    client.close();
  });

  test("is answered also where a header is there twice that may be there once", async () => {
    const port = await outside.tls(host, (socket) => {
      const twice = "X-Content-Type-Options: nosniff\r\nX-Content-Type-Options: nosniff\r\n";
      const others = "Content-Type: text/a\r\nContent-Type: text/b\r\nContent-Language: de\r\nContent-Language: fr\r\n";
      socket.once("data", () => socket.write(`HTTP/1.1 200 OK\r\n${twice}${others}Content-Length: 0\r\n\r\n`));
    });
    await using inside = await leading(port);
    const client = await session(inside);
    const { status, headers } = await ask(client, { ":path": "/ok/" });
    client.destroy();
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      "x-content-type-options": "nosniff",
      "content-type": "text/a",
      "content-language": "de, fr",
    });
  });

  test.each([0, 1, 200_000])("a body is over at once where the server is gone after %d bytes of it", async (bytes) => {
    const port = await outside.tls(host, (socket) => {
      let seen = 0;
      socket.on("data", (part) => {
        seen += part.length;
        if (seen > bytes + 200 || (bytes === 0 && seen > 0)) socket.destroy();
      });
    });
    await using inside = await leading(port);
    const client = await session(inside);
    for (let number = 0; number < 4; number++) {
      const stream = client.request({ ":method": "POST", ":path": "/ok/x" });
      const answer = answerOf(stream);
      stream.end(Buffer.alloc(1_500_000));
      expect(await answer).toMatchObject({ status: 502 });
    }
    client.destroy();
  });

  test("nobody waits for the rest of what was refused", async () => {
    await using inside = new Inside(outside, policyOf([]), { limits: { lingerMs: 50 } });
    const client = await session(inside);
    const stream = client.request({ ":method": "POST", ":path": "/" });
    stream.write("a beginning");
    expect(await answerOf(stream)).toMatchObject({ status: 403, body: expect.stringContaining('"reason": "host"') });
    client.close();
  });

  test("a connection over which nothing is asked has a line, too, and does not stay", async () => {
    await using inside = new Inside(outside, policyOf([]), { limits: { headMs: 50 } });
    const client = await session(inside);
    await new Promise((resolve) => client.once("close", resolve));
    await expect
      .poll(() => inside.audit)
      .toMatchObject([{ kind: "tls", verdict: "failed", host, reason: "nothing was asked" }]);
  });
});

test("a header that is there twice in HTTP/1.1 is said once in HTTP/2, and two lengths are refused", async () => {
  const port = await outside.http2(host, (stream, headers) => {
    stream.respond({ ":status": 200 });
    stream.end(`heard ${headers["content-type"]} ${headers["user-agent"]}`);
  });
  await using inside = await leading(port);
  const asked = async (lengths: string) => {
    const twice = "Content-Type: text/a\r\nContent-Type: text/a\r\nUser-Agent: x\r\nUser-Agent: y\r\n";
    const head = `POST /ok/ HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${twice}${lengths}\r\nx`;
    return parse(await say(await inside.secure(host), head));
  };
  expect(await asked("Content-Length: 1\r\n")).toMatchObject({ status: 200, body: "heard text/a x" });
  expect((await asked("Content-Length: 1\r\nContent-Length: 2\r\n")).status).toBe(400);
});

test("whoever speaks HTTP/1.1 inside is spoken to in HTTP/1.1 outside", async () => {
  const port = await outside.https(host, (request, response) => response.end(`${request.httpVersion} ${request.url}`));
  await using inside = await leading(port);
  const answer = await say(
    await inside.secure(host),
    `GET /ok/1 HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
  );
  expect(parse(answer).body).toBe("1.1 /ok/1");
});

describe("requests that HTTP/2 itself holds for malformed", () => {
  const malformed = { ":path": "no-slash" };

  test("pass nothing, and leave a line each, before a proper one and after it", async () => {
    let asked = 0;
    const port = await outside.http2(host, (stream) => {
      asked += 1;
      stream.respond({ ":status": 200 });
      stream.end();
    });
    await using inside = await leading(port);
    const client = await session(inside);
    await expect(ask(client, malformed)).rejects.toThrow();
    await expect(ask(client, malformed)).rejects.toThrow();
    expect(await ask(client, { ":path": "/ok/1" })).toMatchObject({ status: 200 });
    await expect(ask(client, malformed)).rejects.toThrow();
    client.close();
    const refused = { kind: "http", verdict: "refused", reason: "spelling", host };
    await expect.poll(() => inside.audit).toMatchObject([refused, refused, { verdict: "allowed" }, refused]);
    expect(asked).toBe(1);
  });

  test("end the connection where there are many, and where there was nothing else they are all that is told of", async () => {
    await using inside = await leading(1);
    const client = await session(inside);
    await Promise.all(Array.from({ length: 120 }, () => ask(client, malformed).catch(() => {})));
    client.close();
    await expect.poll(() => inside.audit.length).toBe(100);
    expect(new Set(inside.audit.map(({ reason }) => reason))).toEqual(new Set(["spelling"]));
  });
});
