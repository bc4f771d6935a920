// @module-tag security
import { X509Certificate } from "node:crypto";
import { connect as connectTls } from "node:tls";
import { afterAll, describe, expect, test } from "vitest";
import { proxyPort } from "../../src/gateway/connection.ts";
import { ended, Inside, Outside, parse, policyOf, readAll, readUntil, rule, say } from "./kit.ts";

const outside = new Outside();
afterAll(() => outside[Symbol.asyncDispose]());

const host = "db.example.com";
const rules = [rule(host, { ports: [22, 80, 443, 8443] })];

async function leading(
  port: number,
  more: ConstructorParameters<typeof Inside>[2] = {},
  learn = false,
): Promise<Inside> {
  return new Inside(outside, policyOf(learn ? [] : rules, { learn, reach: { [host]: `127.0.0.1:${port}` } }), {
    ...more,
    limits: { listenMs: 30, lingerMs: 200, ...more.limits },
  });
}

test("where some requests pass and nothing else, whoever is late with his is waited for", async () => {
  const port = await outside.https(host, (_, response) => response.end("told"));
  const policy = policyOf([rule(host, { ports: [8443], paths: ["/a/**"] })], {
    reach: { [host]: `127.0.0.1:${port}` },
  });
  await using inside = new Inside(outside, policy, { limits: { listenMs: 10 } });
  const socket = await inside.dial(host, 8443);
  await new Promise((resolve) => setTimeout(resolve, 200));
  const secure = connectTls({ socket, servername: host, ca: [inside.authority.certificatePem] });
  const request = `GET /a/b HTTP/1.1\r\nHost: ${host}:8443\r\nConnection: close\r\n\r\n`;
  expect(parse(await say(secure, request))).toMatchObject({ status: 200, body: "told" });
});

describe("a tunnel of any protocol", () => {
  test("lets the server speak first", async () => {
    const port = await outside.tcp((socket) => {
      socket.write("SSH-2.0-server\r\n");
      socket.once("data", (bytes) => socket.end(`heard ${bytes}`));
    });
    await using inside = await leading(port);
    const { socket } = await inside.connect(`${host}:22`);
    expect(await readUntil(socket, "\r\n")).toBe("SSH-2.0-server\r\n");
    expect(await say(socket, "SSH-2.0-client\r\n")).toBe("heard SSH-2.0-client\r\n");
    await expect
      .poll(() => inside.audit)
      .toMatchObject([
        { kind: "tcp", verdict: "allowed", host, port: 22, rule: `rule for ${host}`, sent: 16, received: 38 },
      ]);
  });

  test("lets the client speak first, with the head of its request or after it", async () => {
    const port = await outside.tcp((socket) => socket.pipe(socket));
    await using inside = await leading(port);
    const socket = await inside.knock(proxyPort);
    socket.write(`CONNECT ${host}:22 HTTP/1.1\r\nHost: ${host}:22\r\n\r\nSSH-2.0-early\r\n`);
    expect(await readUntil(socket, "early\r\n")).toBe("HTTP/1.1 200 Connection Established\r\n\r\nSSH-2.0-early\r\n");
    socket.write("later");
    expect(await readUntil(socket, "later")).toBe("later");
    socket.end();
    await ended(socket);
    await expect.poll(() => inside.audit).toMatchObject([{ verdict: "allowed", sent: 20, received: 20 }]);
  });

  test("keeps what is half closed half open, from either side", async () => {
    const port = await outside.tcp((socket) => {
      const all = readAll(socket);
      void all.then((text) => setTimeout(() => socket.end(`${text.length} bytes`), 50));
    });
    await using inside = await leading(port);
    const { socket } = await inside.connect(`${host}:22`);
    const answer = readAll(socket);
    socket.end("x".repeat(1000));
    expect(await answer).toBe("1000 bytes");

    let heard: Promise<string> = Promise.resolve("");
    const first = await outside.tcp((server) => {
      heard = readAll(server);
      server.end("goodbye");
    });
    await using other = await leading(first);
    const { socket: client } = await other.connect(`${host}:22`);
    expect(await readAll(client)).toBe("goodbye");
    client.end("still here");
    await expect.poll(() => heard).toBe("still here");
    await expect.poll(() => other.audit).toMatchObject([{ verdict: "allowed", sent: 10, received: 7 }]);
  });

  test("breaks on one side when it breaks on the other", async () => {
    const port = await outside.tcp((socket) => {
      socket.once("data", () => socket.resetAndDestroy());
    });
    await using inside = await leading(port);
    const { socket } = await inside.connect(`${host}:22`);
    const broken = new Promise<NodeJS.ErrnoException>((resolve) => socket.once("error", resolve));
    socket.write("SSH-2.0\r\n");
    socket.resume();
    expect((await broken).code).toBe("ECONNRESET");
    await expect.poll(() => inside.audit).toMatchObject([{ verdict: "allowed", sent: 9 }]);
  });

  test("is refused where no rule allows it, before anything is dialled", async () => {
    await using inside = await leading(1);
    const { status, rest } = await inside.connect("other.example.com:22");
    expect(status).toBe(403);
    expect(rest).toContain("Content-Type: application/json");
    const wrong = await inside.connect(`${host}:23`);
    expect(wrong.status).toBe(403);
    expect(inside.audit).toMatchObject([
      { verdict: "refused", method: "CONNECT", host: "other.example.com", port: 22, reason: "host", status: 403 },
      { verdict: "refused", method: "CONNECT", host, port: 23, reason: "port", status: 403 },
    ]);
  });

  test("ends where nobody is there, or nobody knows the name", async () => {
    const port = await outside.tcp(() => {});
    await using closed = await leading(port);
    await using inside = new Inside(outside, policyOf([rule(host, { ports: [22], local: true })]), {
      resolve: async () => {
        throw new Error("nobody knows");
      },
      limits: { listenMs: 10 },
    });
    const { socket } = await inside.connect(`${host}:22`);
    await ended(socket);
    await expect
      .poll(() => inside.audit)
      .toMatchObject([{ verdict: "failed", reason: expect.stringContaining("nobody knows") }]);
    expect(closed.audit).toEqual([]);
  });

  test.each([
    `CONNECT ${host} HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
    `CONNECT ${host}:22 HTTP/1.1\r\nHost: other.example.com:22\r\n\r\n`,
    `CONNECT ${host}:22 HTTP/1.1\r\nHost: ${host}:23\r\n\r\n`,
    `CONNECT ${host}:22 HTTP/1.1\r\nHost: ${host}\r\nHost: ${host}\r\n\r\n`,
    `CONNECT ${host}.:22 HTTP/1.1\r\nHost: ${host}.:22\r\n\r\n`,
    `CONNECT ${host}:022 HTTP/1.1\r\nHost: ${host}:022\r\n\r\n`,
    `CONNECT ${host}:99999 HTTP/1.1\r\n\r\n`,
    `CONNECT user@${host}:22 HTTP/1.1\r\n\r\n`,
    `CONNECT http://${host}:22 HTTP/1.1\r\n\r\n`,
    `CONNECT 0x7f.1:22 HTTP/1.1\r\n\r\n`,
    `CONNECT [::ffff:7f00:1%25lo]:22 HTTP/1.1\r\n\r\n`,
    `CONNECT ${host}:22 HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello`,
  ])("is refused where it is spelled oddly: %j", async (text) => {
    await using inside = await leading(1);
    expect(parse(await say(await inside.knock(proxyPort), text)).status).toBe(400);
    expect(inside.audit).toMatchObject([{ verdict: "refused", reason: "spelling", status: 400 }]);
  });
});

describe("TLS that nobody looks into", () => {
  const server = () => outside.tls(host, (socket) => socket.pipe(socket));

  test("is joined as it is, and its name may be written in capitals", async () => {
    await using inside = await leading(await server());
    inside.believed = [outside.authority.certificatePem];
    const secure = await inside.secure(host, { servername: host.toUpperCase(), alpn: ["postgresql"] });
    const worlds = new X509Certificate(outside.authority.certificatePem);
    expect(new X509Certificate(secure.getPeerCertificate().raw).verify(worlds.publicKey)).toBe(true);
    secure.write("hello");
    expect(await readUntil(secure, "hello")).toBe("hello");
    secure.destroy();
    await expect.poll(() => inside.audit).toMatchObject([{ kind: "tls", verdict: "allowed", host, port: 443 }]);
  });

  test("may name nobody where the tunnel does", async () => {
    await using inside = await leading(await server());
    const { socket } = await inside.connect(`${host}:443`);
    const secure = connectTls({ socket, rejectUnauthorized: false });
    secure.write("hello");
    expect(await readUntil(secure, "hello")).toBe("hello");
    secure.destroy();
    await expect.poll(() => inside.audit).toMatchObject([{ kind: "tls", verdict: "allowed", host }]);
  });

  test.each([443, 8443])("is refused by an alert where it names another host than the tunnel (%i)", async (port) => {
    let reached = 0;
    const server = await outside.tcp((socket) => {
      socket.on("data", () => {
        reached += 1;
      });
    });
    await using inside = await leading(server);
    await expect(inside.secure(host, { port, servername: "other.example.com" })).rejects.toMatchObject({
      code: "ERR_SSL_TLSV1_UNRECOGNIZED_NAME",
    });
    expect(inside.audit).toMatchObject([{ kind: "tls", verdict: "refused", host: "other.example.com", port }]);
    expect(reached).toBe(0);
  });

  test("is refused there also by whoever waits for a while first", async () => {
    let heard = "";
    const server = await outside.tcp((socket) => {
      socket.on("data", (bytes) => {
        heard += bytes;
      });
    });
    await using inside = await leading(server);
    const { socket } = await inside.connect(`${host}:8443`);
    await new Promise((resolve) => setTimeout(resolve, 100));
    const secure = connectTls({ socket, servername: "other.example.com" });
    const error = await new Promise<NodeJS.ErrnoException>((resolve) => secure.once("error", resolve));
    expect(error.code).toBe("ERR_SSL_TLSV1_UNRECOGNIZED_NAME");
    expect(heard).toBe("");
    expect(inside.audit).toMatchObject([{ kind: "tls", verdict: "refused" }]);
  });

  test("of another protocol than HTTP is refused by an alert where paths decide", async () => {
    await using inside = new Inside(outside, policyOf([rule(host, { paths: ["/ok"] })]));
    await expect(inside.secure(host, { alpn: ["postgresql"] })).rejects.toMatchObject({
      code: "ERR_SSL_TLSV1_ALERT_ACCESS_DENIED",
    });
    expect(inside.audit).toMatchObject([{ kind: "tls", verdict: "refused", reason: "protocol" }]);
    await expect(inside.secure("no.example.com", { alpn: ["imap"] })).rejects.toThrow();
    expect(inside.audit[1]).toMatchObject({ kind: "tls", verdict: "refused", reason: "host" });
  });
});

describe("a name that was asked for", () => {
  test("leads where it says, in any protocol, without a proxy", async () => {
    const port = await outside.tcp((socket) => socket.end("SSH-2.0-server\r\n"));
    await using inside = await leading(port);
    const socket = await inside.dial(host, 22);
    expect(await readAll(socket)).toBe("SSH-2.0-server\r\n");
    socket.end();
    await expect
      .poll(() => inside.audit)
      .toMatchObject([
        { kind: "dns", verdict: "allowed", host },
        { kind: "tcp", verdict: "allowed", host, port: 22, received: 16 },
      ]);
  });

  test("must be the one that TLS and Host name", async () => {
    const port = await outside.http((request, response) => response.end(request.headers.host));
    await using inside = await leading(port);
    const close = "Connection: close\r\n\r\n";
    expect(parse(await say(await inside.dial(host, 80), `GET / HTTP/1.1\r\nHost: ${host}\r\n${close}`)).body).toBe(
      host,
    );
    const other = await say(await inside.dial("no.example.com", 80), `GET / HTTP/1.1\r\nHost: ${host}\r\n${close}`);
    expect(parse(other).status).toBe(400);
    const secure = connectTls({ socket: await inside.dial("no.example.com", 443), servername: host });
    const error = await new Promise<NodeJS.ErrnoException>((resolve) => secure.once("error", resolve));
    expect(error.code).toBe("ERR_SSL_TLSV1_UNRECOGNIZED_NAME");
    const refused = await say(
      await inside.dial("no.example.com", 80),
      `GET / HTTP/1.1\r\nHost: no.example.com\r\n${close}`,
    );
    expect(parse(refused).status).toBe(403);
    expect(inside.audit.filter(({ kind }) => kind !== "dns").map(({ verdict }) => verdict)).toEqual([
      "allowed",
      "refused",
      "refused",
      "refused",
    ]);
  });
});

describe("an address that was dialled without a name", () => {
  test("leads where TLS says, by the name that it names", async () => {
    const port = await outside.tls(host, (socket) => socket.end("it is me"));
    await using inside = await leading(port);
    const secure = connectTls({
      socket: await inside.knock(443),
      servername: host,
      ca: [outside.authority.certificatePem],
    });
    expect(await readAll(secure)).toBe("it is me");
    secure.destroy();
    await expect.poll(() => inside.audit).toMatchObject([{ kind: "tls", verdict: "allowed", host, port: 443 }]);
  });

  test("leads where Host says, and is itself no name that a rule knows", async () => {
    const port = await outside.http((request, response) => response.end(request.headers.host));
    await using inside = await leading(port);
    const close = "Connection: close\r\n\r\n";
    expect(parse(await say(await inside.knock(80), `GET / HTTP/1.1\r\nHost: ${host}\r\n${close}`)).body).toBe(host);
    expect(parse(await say(await inside.knock(80), `GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n${close}`)).status).toBe(403);
    const nameless = connectTls({
      socket: await inside.knock(443),
      rejectUnauthorized: false,
      ALPNProtocols: ["http/1.1"],
    });
    expect(parse(await say(nameless, `GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n${close}`)).status).toBe(403);
    expect(inside.audit.map(({ verdict, host: asked }) => [verdict, asked])).toEqual([
      ["allowed", host],
      ["refused", "127.0.0.1"],
      ["refused", "127.0.0.1"],
    ]);
  });

  test("is refused like any other, with a reset where there are no words", async () => {
    await using inside = await leading(1);
    const socket = await inside.knock(22);
    const error = new Promise<NodeJS.ErrnoException>((resolve) => socket.once("error", resolve));
    socket.resume();
    expect((await error).code).toBe("ECONNRESET");
    await expect
      .poll(() => inside.audit)
      .toMatchObject([{ kind: "tcp", verdict: "refused", host: "127.0.0.1", port: 22 }]);
  });

  test("that a rule names is dialled, wherever it lies", async () => {
    const port = await outside.tcp((socket) => socket.end("SSH-2.0-here\r\n"));
    await using inside = new Inside(outside, policyOf([rule("127.0.0.1", { ports: [port] })]), {
      limits: { listenMs: 10 },
    });
    expect(await readAll(await inside.knock(port))).toBe("SSH-2.0-here\r\n");
    await using strict = new Inside(outside, policyOf([rule("**", { ports: [port] })]), { limits: { listenMs: 10 } });
    await ended(await strict.knock(port));
    await expect.poll(() => strict.audit).toMatchObject([{ verdict: "refused" }]);
  });
});

describe("a connection that never becomes anything", () => {
  test("has one line, and does not stay", async () => {
    await using inside = await leading(1, { limits: { silenceMs: 400, beginningMs: 800, headMs: 800, listenMs: 10 } });
    await ended(await inside.knock(80));
    await expect
      .poll(() => inside.audit)
      .toMatchObject([{ kind: "tcp", verdict: "failed", reason: "nothing was asked" }]);
    const half = await inside.knock(443);
    half.write(Buffer.from("1603010200010001fc0303", "hex"));
    await ended(half);
    await expect
      .poll(() => inside.audit[1])
      .toMatchObject({ verdict: "refused", reason: "its beginning took too long" });
    const slow = await inside.knock(80);
    slow.write("GET / HTTP/1.1\r\nHost: ");
    await ended(slow);
    await expect
      .poll(() => inside.audit[2])
      .toMatchObject({ verdict: "failed", reason: "its beginning took too long" });
    (await inside.knock(443)).destroy();
    await expect.poll(() => inside.audit).toHaveLength(4);
    const { socket } = await inside.connect("no.example.com:443");
    connectTls({ socket, servername: "no.example.com" }).on("error", () => {});
    await expect.poll(() => inside.audit[4]).toMatchObject({ kind: "tls", verdict: "failed", host: "no.example.com" });
    expect(inside.audit).toHaveLength(5);
  });

  test("is turned away where it speaks TLS to the proxy, or nonsense to the web", async () => {
    await using inside = await leading(1);
    const secure = connectTls({ socket: await inside.knock(proxyPort), servername: host });
    const error = await new Promise<NodeJS.ErrnoException>((resolve) => secure.once("error", resolve));
    expect(error.code).toBe("ERR_SSL_TLSV1_ALERT_ACCESS_DENIED");
    const nonsense = await inside.knock(80);
    nonsense.write("\u0000\u0001\u0002");
    await ended(nonsense);
    await expect
      .poll(() => inside.audit)
      .toMatchObject([
        { verdict: "refused", reason: "protocol" },
        { verdict: "refused", reason: "host" },
      ]);
  });
});

describe("while it learns", () => {
  test("everything is allowed, TLS is opened and each request noted", async () => {
    const port = await outside.https(host, (_, response) => response.end("learnt"));
    await using inside = await leading(port, {}, true);
    const ask = `GET /a?b HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
    expect(parse(await say(await inside.secure(host), ask)).body).toBe("learnt");
    expect(inside.audit).toMatchObject([
      { kind: "http", scheme: "https", verdict: "allowed", host, path: "/a", method: "GET", rule: null, status: 200 },
    ]);
  });

  test("other protocols are joined as they are", async () => {
    const port = await outside.tls(host, (socket) => socket.pipe(socket));
    await using inside = await leading(port, {}, true);
    inside.believed = [outside.authority.certificatePem];
    const secure = await inside.secure(host, { port: 8883, alpn: ["mqtt"] });
    secure.write("hello");
    expect(await readUntil(secure, "hello")).toBe("hello");
    secure.destroy();
    const ssh = await outside.tcp((socket) => socket.end("SSH-2.0-x\r\n"));
    await using other = await leading(ssh, {}, true);
    const { socket } = await other.connect(`${host}:22`);
    expect(await readAll(socket)).toBe("SSH-2.0-x\r\n");
    socket.end();
    await expect
      .poll(() => [...inside.audit, ...other.audit])
      .toMatchObject([
        { kind: "tls", verdict: "allowed", port: 8883 },
        { kind: "tcp", verdict: "allowed", port: 22 },
      ]);
  });

  test("what is not public is not", async () => {
    await using inside = new Inside(outside, policyOf([], { learn: true }), { resolve: async () => ["10.0.0.1"] });
    const ask = `GET http://${host}/ HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
    expect(parse(await say(await inside.knock(proxyPort), ask)).body).toContain('"reason": "address"');
  });
});
