// @module-tag security
import { connect as connectHttp2, constants } from "node:http2";
import type { Socket } from "node:net";
import { afterAll, describe, expect, test } from "vitest";
import { proxyPort } from "../../src/gateway/connection.ts";
import { usualLimits } from "../../src/gateway/limits.ts";
import { heldBytesAmong } from "../../src/gateway/pump.ts";
import { ended, Inside, Outside, parse, policyOf, readUntil, rule, say } from "./kit.ts";
import { RawHttp2 } from "./raw-http2.ts";

const outside = new Outside();
afterAll(() => outside[Symbol.asyncDispose]());

const host = "api.example.com";

async function leading(port: number, limits: NonNullable<ConstructorParameters<typeof Inside>[2]>["limits"] = {}) {
  const policy = policyOf([rule(host, { ports: [22, 80, 443] })], { reach: { [host]: `127.0.0.1:${port}` } });
  return new Inside(outside, policy, { limits: { listenMs: 20, ...limits } });
}

const get = (path = "/") => `GET http://${host}${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`;

describe("there is a limit", () => {
  test("to connections at once: who comes too late is turned away, and may come again", async () => {
    await using inside = await leading(await outside.tcp((socket) => socket.pipe(socket)), { connections: 3 });
    const held = await Promise.all([1, 2, 3].map(() => inside.connect(`${host}:22`)));
    const late = await inside.knock(proxyPort);
    await ended(late);
    expect(inside.audit).toMatchObject([{ verdict: "refused", reason: "limit", port: proxyPort }]);
    for (const { socket } of held) socket.destroy();
    await expect.poll(() => inside.audit).toHaveLength(4);
    const { socket, status } = await inside.connect(`${host}:22`);
    expect(status).toBe(200);
    socket.destroy();
  });

  test("to requests under way at once", async () => {
    const waiting: (() => void)[] = [];
    const port = await outside.http((_, response) => void waiting.push(() => response.end("done")));
    await using inside = await leading(port, { requests: 2 });
    const sockets: Socket[] = [];
    for (let at = 0; at < 2; at++) {
      const socket = await inside.knock(proxyPort);
      socket.write(get());
      sockets.push(socket);
    }
    await expect.poll(() => waiting.length).toBe(2);
    const late = await inside.knock(proxyPort);
    late.write(get());
    expect(await readUntil(late, "}")).toMatch(/^HTTP\/1.1 503 /);
    expect(inside.audit).toMatchObject([{ verdict: "refused", reason: "limit", status: 503 }]);
    for (const answer of waiting) answer();
    expect(await readUntil(sockets[0] as Socket, "done")).toMatch(/^HTTP\/1.1 200/);
    late.write(get());
    await expect.poll(() => waiting.length).toBe(3);
    waiting[2]?.();
    expect(await readUntil(late, "done")).toMatch(/^HTTP\/1.1 200/);
    for (const socket of [...sockets, late]) socket.destroy();
  });

  test("to what is asked on one connection before it is answered", async () => {
    const port = await outside.http(() => {});
    await using inside = await leading(port, { pipelined: 3 });
    const socket = await inside.knock(proxyPort);
    socket.write(get().repeat(5));
    await ended(socket);
    await expect
      .poll(() => inside.audit.map(({ reason }) => reason).toSorted())
      .toEqual(["limit", ...Array.from({ length: 3 }, () => "the box has broken it off")]);
  });

  test("to connections in which the gateway speaks TLS itself", async () => {
    await using inside = await leading(1, { opened: 1 });
    inside.gateway.replacePolicy(policyOf([]));
    const first = await inside.secure(host);
    await expect(inside.secure(host)).rejects.toThrow();
    expect(inside.audit).toMatchObject([{ kind: "tls", verdict: "refused", reason: "limit" }]);
    first.destroy();
    await expect
      .poll(() =>
        inside.secure(host).then(
          (socket) => void socket.destroy(),
          () => "refused",
        ),
      )
      .toBe(undefined);
  });

  test("to the connections that speak HTTP/2, and to streams on all of them", async () => {
    const port = await outside.http2(host, (stream, headers) => {
      stream.respond({ ":status": 200 });
      if (headers[":path"] === "/") stream.end("fine");
    });
    await using inside = await leading(port, { http2Connections: 2, allStreams: 3 });
    const reach = { [host]: `127.0.0.1:${port}` };
    inside.gateway.replacePolicy(policyOf([rule(host, { paths: ["/**"] })], { reach }));
    const clients = await Promise.all(
      [1, 2].map(async () => {
        const socket = await inside.secure(host, { alpn: ["h2"] });
        return connectHttp2(`https://${host}`, { createConnection: () => socket }).on("error", () => {});
      }),
    );
    const ask = (index: number, path: string) => {
      const stream = (clients[index] as ReturnType<typeof connectHttp2>).request({ ":path": path });
      return new Promise((resolve) => {
        stream.once("response", (headers) => resolve(headers[":status"])).once("error", () => resolve(stream.rstCode));
      });
    };
    expect(await Promise.all([ask(0, "/stays"), ask(0, "/stays"), ask(1, "/stays")])).toEqual([200, 200, 200]);
    expect(await ask(1, "/")).toBe(constants.NGHTTP2_REFUSED_STREAM);
    const third = await inside.secure(host, { alpn: ["h2"] });
    await ended(third);
    clients[0]?.destroy();
    await expect.poll(() => ask(1, "/")).toBe(200);
    clients[1]?.destroy();
    await expect.poll(() => inside.audit.filter(({ reason }) => reason === "limit").length).toBeGreaterThanOrEqual(2);
  });

  test("to the streams of one connection", async () => {
    await using inside = await leading(1, { streams: 7 });
    inside.gateway.replacePolicy(policyOf([]));
    const socket = await inside.secure(host, { alpn: ["h2"] });
    const client = connectHttp2(`https://${host}`, { createConnection: () => socket });
    const settings = await new Promise((resolve) => client.once("remoteSettings", resolve));
    expect(settings).toMatchObject({ maxConcurrentStreams: 7, enableConnectProtocol: false });
    client.destroy();
  });

  test("to a head, which is told", async () => {
    await using inside = await leading(1, { lingerMs: 50 });
    const answer = await say(
      await inside.knock(proxyPort),
      get().replace("\r\n\r\n", `\r\nX-Long: ${"x".repeat(70_000)}\r\n\r\n`),
    );
    expect(parse(answer).status).toBe(431);
    const many = "aaa:bbb\r\n".repeat(15_000);
    expect(parse(await say(await inside.knock(proxyPort), get().replace("\r\n\r\n", `\r\n${many}\r\n`))).status).toBe(
      431,
    );
    expect(parse(await say(await inside.knock(proxyPort), `GET http://${host}/${"x".repeat(70_000)}`)).status).toBe(
      431,
    );
    expect(inside.audit).toMatchObject([{ status: 431 }, { status: 431 }, { status: 431 }]);
    expect(JSON.stringify(inside.audit).length).toBeLessThan(2_000);
  });

  test("to what a line of the audit holds", async () => {
    const port = await outside.http((_, response) => response.end());
    await using inside = await leading(port);
    const socket = await inside.knock(proxyPort);
    socket.write(get(`/${"x".repeat(10_000)}`).replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"));
    await ended(socket);
    expect(inside.audit).toMatchObject([{ status: 200, verdict: "allowed" }]);
    expect(inside.audit[0]?.path?.length).toBeLessThan(1_100);
  });

  test("to how many headers there are, on either side: none is left out in silence", async () => {
    const { headFields } = usualLimits;
    let head = "";
    let fields = headFields;
    const port = await outside.tcp((socket) => {
      head = "";
      socket.on("data", (bytes) => {
        head += bytes;
        if (!head.endsWith("\r\n\r\n")) return;
        socket.end(`HTTP/1.1 200 OK\r\n${"b:1\r\n".repeat(fields - 1)}Connection: close\r\n\r\n`);
      });
    });
    await using inside = await leading(port, { lingerMs: 50 });
    const ask = async (text: string, count: number) => {
      const more = `\r\nConnection: close\r\n${"a:1\r\n".repeat(count - 2)}\r\n`;
      return parse(await say(await inside.knock(proxyPort), text.replace("\r\n\r\n", more)));
    };
    const answer = await ask(get(), headFields);
    expect(answer.status).toBe(200);
    expect(answer.head.match(/b: 1/g)).toHaveLength(headFields - 1);
    expect(head.match(/a: 1/g)).toHaveLength(headFields - 2);
    expect((await ask(get(), headFields + 1)).status).toBe(431);
    const upgrade = `GET http://${host}/ HTTP/1.1\r\nHost: ${host}\r\nUpgrade: h2c\r\n\r\n`;
    expect((await ask(upgrade, headFields + 50)).status).toBe(431);
    const connect = `CONNECT ${host}:80 HTTP/1.1\r\nHost: ${host}:80\r\n\r\n`;
    expect((await ask(connect, headFields + 1)).status).toBe(431);
    fields = headFields + 1;
    expect(await ask(get(), 3)).toMatchObject({ status: 502, body: expect.stringContaining("too long") });
  });

  test("to a head in HTTP/2, where a byte can stand for a long header", async () => {
    const port = await outside.http2(host, (stream) => {
      stream.respond({ ":status": 200 });
      stream.end("fine");
    });
    await using inside = await leading(port, { lingerMs: 50 });
    const policy = policyOf([rule(host, { paths: ["/**"] })], { reach: { [host]: `127.0.0.1:${port}` } });
    inside.gateway.replacePolicy(policy);
    const one = await new RawHttp2(await inside.secure(host, { alpn: ["h2"] })).ask(host, { long: 3900, repeats: 3 });
    expect(one).toContain("200");
    // Twelve kilobytes of it once, and then more than there may be: answered, and the connection is over.
    const raw = new RawHttp2(await inside.secure(host, { alpn: ["h2"] }));
    expect(await raw.ask(host, { long: 3900, repeats: 40 })).toContain("431");
    await ended(raw.socket);
    const many = new RawHttp2(await inside.secure(host, { alpn: ["h2"] }));
    expect(await many.ask(host, { long: 1, repeats: 900 })).not.toContain("200");
    many.socket.destroy();
    await expect.poll(() => inside.audit.map(({ status }) => status)).toEqual([200, 431]);
  });

  test("to all heads under way together", async () => {
    const waiting: (() => void)[] = [];
    const port = await outside.http((_, response) => void waiting.push(() => response.end("done")));
    await using inside = await leading(port, { headsBytes: 2_000 });
    const long = get().replace("\r\n\r\n", `\r\nX-Long: ${"x".repeat(1_500)}\r\n\r\n`);
    const [first, second] = [await inside.knock(proxyPort), await inside.knock(proxyPort)];
    first.write(long);
    await expect.poll(() => waiting.length).toBe(1);
    second.write(long);
    expect(await readUntil(second, "}")).toMatch(/^HTTP\/1.1 503 /);
    waiting[0]?.();
    await readUntil(first, "done");
    second.write(long);
    await expect.poll(() => waiting.length).toBe(2);
    for (const socket of [first, second]) socket.destroy();
  });

  test("to empty lines before a request, which go no further; and to the beginnings of all connections", async () => {
    let heard = "";
    const port = await outside.tcp((socket) => {
      socket.on("data", (bytes) => {
        heard += bytes;
        socket.end("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
      });
    });
    await using inside = await leading(port, { openingsBytes: 70_000 });
    const lines = "\r\n".repeat(500);
    const asked = get().replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    expect(parse(await say(await inside.knock(proxyPort), lines + asked)).status).toBe(200);
    expect(heard).toMatch(/^GET /);
    expect(await say(await inside.knock(80), lines + lines)).toBe("");
    const hello = Buffer.concat([Buffer.from("1603010fff0100fffb", "hex"), Buffer.alloc(4_000)]);
    const held = await Promise.all(Array.from({ length: 20 }, () => inside.knock(443)));
    for (const socket of held) socket.write(hello);
    await Promise.race(held.map(ended));
    await expect
      .poll(() => new Set(inside.audit.map(({ reason }) => reason)))
      .toEqual(new Set([undefined, "it says nothing but empty lines", "too many connections are beginning"]));
    for (const socket of held) socket.destroy();
    await expect.poll(() => inside.audit.length).toBe(22);
    expect(parse(await say(await inside.knock(proxyPort), asked)).status).toBe(200);
  });
});

test("the more connections there are, the less of each is held", () => {
  expect(heldBytesAmong(1)).toBeGreaterThan(heldBytesAmong(usualLimits.connections));
  // What is read at once, twice, and what Node holds of it.
  const most = (2 << 16) + heldBytesAmong(usualLimits.connections);
  expect(usualLimits.connections * most).toBeLessThan(400 << 20);
});

describe("while nothing can be written down", () => {
  const blindly = async (isBlind: () => boolean) => {
    let reached = 0;
    const port = await outside.http((_, response) => {
      reached += 1;
      response.end("reached");
    });
    const policy = policyOf([rule(host)], { reach: { [host]: `127.0.0.1:${port}` } });
    return { inside: new Inside(outside, policy, { isBlind }), reached: () => reached };
  };

  test("nothing is let through, also on a connection that was there before; and after that it is again", async () => {
    let isBlind = false;
    const { inside, reached } = await blindly(() => isBlind);
    await using _ = inside;
    const socket = await inside.knock(proxyPort);
    socket.write(get());
    expect(await readUntil(socket, "reached")).toMatch(/^HTTP\/1.1 200/);
    isBlind = true;
    socket.write(get());
    expect(await readUntil(socket, "}")).toMatch(/^HTTP\/1.1 503[\s\S]*AUDIT_FAILED/);
    await ended(await inside.knock(proxyPort));
    expect(reached()).toBe(1);
    isBlind = false;
    socket.write(get());
    expect(await readUntil(socket, "reached")).toMatch(/^HTTP\/1.1 200/);
    socket.destroy();
    expect(inside.audit).toMatchObject([
      { verdict: "allowed" },
      { kind: "http", verdict: "refused", reason: "audit", status: 503 },
      { kind: "tcp", verdict: "refused", reason: "audit" },
      { verdict: "allowed" },
    ]);
  });
});

describe("nobody is waited for longer than", () => {
  test("a head may take, however slowly it comes, first or later", async () => {
    const port = await outside.http((_, response) => response.end("fine"));
    await using inside = await leading(port, { headMs: 150 });
    const socket = await inside.knock(proxyPort);
    socket.write("GET http://");
    const drip = setInterval(() => socket.write("x"), 20);
    await ended(socket);
    clearInterval(drip);
    expect(inside.audit).toMatchObject([{ verdict: "failed", reason: "its beginning took too long" }]);
    const kept = await inside.knock(proxyPort);
    kept.write(get());
    await readUntil(kept, "fine");
    kept.write("GET ");
    await ended(kept);
    expect(inside.audit).toMatchObject([{ verdict: "failed" }, { verdict: "allowed" }]);
  });

  test("a head may take, though an answer may", async () => {
    const port = await outside.http((_, response) => void setTimeout(() => response.end("late"), 250));
    await using inside = await leading(port, { headMs: 60, idleMs: 60 });
    const socket = await inside.knock(proxyPort);
    // The one that waits for another counts as well.
    socket.write(get() + get());
    expect(await readUntil(socket, "late")).toContain("late");
    socket.destroy();
  });

  test("a head may take, though one that offered another protocol and was answered without it may be slow", async () => {
    const port = await outside.http((_, response) => void setTimeout(() => response.end("late"), 250));
    await using inside = await leading(port, { headMs: 60 });
    const socket = await inside.knock(proxyPort);
    socket.write(get().replace("\r\n\r\n", "\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"));
    expect(await readUntil(socket, "late")).toMatch(/^HTTP\/1.1 200/);
    await ended(socket);
    expect(inside.audit).toMatchObject([{ verdict: "allowed", status: 200 }]);
  });

  test("is polite after a refusal", async () => {
    await using inside = await leading(1, { lingerMs: 100 });
    const socket = await inside.knock(proxyPort);
    socket.write("POST http://no.example.com/ HTTP/1.1\r\nHost: no.example.com\r\nContent-Length: 99999999\r\n\r\n");
    const endless = setInterval(() => socket.write("x".repeat(1000)), 5);
    const answer = await readUntil(socket, "}");
    expect(answer).toMatch(/^HTTP\/1.1 403/);
    await ended(socket);
    clearInterval(endless);
    expect(inside.audit).toHaveLength(1);
  });

  test("an address or a handshake outside may take", async () => {
    const mute = await outside.tcp(() => {});
    const policy = policyOf([rule(host, { methods: ["GET"] })], { reach: { [host]: `127.0.0.1:${mute}` } });
    await using inside = new Inside(outside, policy, { limits: { dialMs: 100 } });
    const answer = await say(await inside.secure(host), `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    expect(parse(answer)).toMatchObject({ status: 502, body: expect.stringContaining("in time") });
    await using unnamed = new Inside(outside, policyOf([rule(host)]), {
      limits: { dialMs: 100 },
      resolve: () => new Promise(() => {}),
    });
    expect(
      parse(await say(await unnamed.knock(proxyPort), get().replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")))
        .status,
    ).toBe(502);
  });
});

describe("when the gateway is closed", () => {
  test("what is open is written down as far as it has come, once, and nothing new is served", async () => {
    const port = await outside.http((_, response) => void response.write("part"));
    const echo = await outside.tcp((socket) => socket.pipe(socket));
    const policy = policyOf([rule(host), rule("ssh.example.com", { ports: [22] })], {
      reach: { [host]: `127.0.0.1:${port}`, "ssh.example.com": `127.0.0.1:${echo}` },
    });
    await using inside = new Inside(outside, policy, { limits: { listenMs: 20 } });
    const { socket: tunnel } = await inside.connect("ssh.example.com:22");
    tunnel.write("SSH-2.0\r\n");
    await readUntil(tunnel, "\r\n");
    const request = await inside.knock(proxyPort);
    request.write(get());
    await readUntil(request, "part");
    const silent = await inside.knock(80);
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(inside.audit).toEqual([]);
    inside.gateway[Symbol.dispose]();
    expect(inside.audit).toMatchObject([
      { kind: "tcp", verdict: "allowed", host: "ssh.example.com", sent: 9, received: 9 },
      { kind: "http", verdict: "failed", status: 200, received: 4, reason: "the gateway was closed" },
      { kind: "tcp", verdict: "failed", reason: "the gateway was closed" },
    ]);
    await Promise.all([tunnel, request, silent].map(ended));
    await ended(await inside.knock(proxyPort));
    expect(inside.gateway.answer(Buffer.alloc(20))).toBeNull();
    expect(inside.audit).toHaveLength(3);
  });

  test("no connection is left, on either side", async () => {
    const world: Socket[] = [];
    const port = await outside.http((request, response) => {
      world.push(request.socket);
      response.end("ok");
    });
    {
      await using inside = await leading(port);
      for (let at = 0; at < 5; at++) {
        const socket = await inside.knock(proxyPort);
        socket.write(get());
        await readUntil(socket, "ok");
        if (at % 2 === 0) socket.destroy();
      }
    }
    await expect.poll(() => world.every(({ destroyed }) => destroyed)).toBe(true);
  });
});

test("questions for names are answered one by one over a connection, and nonsense ends it", async () => {
  await using inside = await leading(1);
  const name = Buffer.from("\u0003api\u0007example\u0003com\u0000", "latin1");
  const query = Buffer.concat([Buffer.from("123401000001000000000000", "hex"), name, Buffer.from("00010001", "hex")]);
  const framed = Buffer.concat([Buffer.from([0, query.length]), query]);
  const socket = await inside.knock(53);
  const parts: Buffer[] = [];
  socket.on("data", (bytes) => parts.push(bytes));
  socket.write(Buffer.concat([framed, framed]));
  await expect.poll(() => Buffer.concat(parts).length).toBe(2 * (2 + query.length + 16));
  socket.write(Buffer.from([0, 3, 1, 2, 3]));
  await ended(socket);
  expect(inside.audit).toMatchObject([
    { kind: "dns", verdict: "allowed", host, port: 53 },
    { kind: "dns", verdict: "allowed", host, port: 53 },
    { kind: "dns", verdict: "refused" },
  ]);
});
