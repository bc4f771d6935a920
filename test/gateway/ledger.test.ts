// @module-tag security
import { connect as connectTls } from "node:tls";
import { afterAll, describe, expect, test } from "vitest";
import type { AuditAhead, AuditEntry, AuditOpening } from "../../src/gateway/audit.ts";
import type { GatewayOptions } from "../../src/gateway/gateway.ts";
import { openLedger } from "../../src/gateway/ledger.ts";
import { ended, Inside, Outside, policyOf, readUntil, rule, say } from "./kit.ts";

const outside = new Outside();
afterAll(() => outside[Symbol.asyncDispose]());

const host = "api.example.com";
let dialled = 0;
const web = outside.https(host, (_, response) => response.end("told"));
const socketServer = outside.tls(host, (socket) => {
  void readUntil(socket, "\r\n\r\n").then(() => {
    socket.resume();
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello");
  });
});
const echo = outside.tcp((socket) => {
  dialled += 1;
  socket.pipe(socket);
});

interface Way {
  readonly port: Promise<number>;
  readonly rule: Partial<ReturnType<typeof rule>>;
  readonly opening: Partial<AuditOpening>;
  /** Lets something out, and waits for what comes back, or for the end where nothing does. */
  ask(inside: Inside): Promise<string>;
}

const upgrade =
  "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
const failing = (error: unknown) => `${error}`;
const ways: Readonly<Record<string, Way>> = {
  "a request": {
    port: web,
    rule: { paths: ["/a/**"] },
    opening: { kind: "http", method: "GET", path: "/a/b" },
    ask: async (inside) =>
      say(await inside.secure(host), `GET /a/b HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`),
  },
  "a WebSocket": {
    port: socketServer,
    rule: { paths: ["/a/**"] },
    opening: { kind: "http", method: "GET", path: "/a/b" },
    ask: async (inside) => {
      const socket = await inside.secure(host);
      socket.write(`GET /a/b HTTP/1.1\r\nHost: ${host}\r\n${upgrade}\r\n`);
      // An answer in words ends so.
      return Promise.race([readUntil(socket, "hello"), readUntil(socket, "}")]).catch(failing);
    },
  },
  "TLS that is passed on": {
    port: web,
    rule: {},
    opening: { kind: "tls" },
    ask: async (inside) => {
      const secure = await inside.secure(host);
      return say(secure, `GET /a/b HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    },
  },
  "a tunnel": {
    port: echo,
    rule: { ports: [5432] },
    opening: { kind: "tcp", port: 5432 },
    ask: async (inside) => {
      const { socket } = await inside.connect(`${host}:5432`);
      socket.write("\0binary");
      return readUntil(socket, "binary").catch(failing);
    },
  },
};

async function open(way: Way, more: Partial<GatewayOptions> = {}): Promise<Inside> {
  const policy = policyOf([rule(host, way.rule)], { reach: { [host]: `127.0.0.1:${await way.port}` } });
  const inside = new Inside(outside, policy, { limits: { listenMs: 30, lingerMs: 200 }, ...more });
  inside.believed = [outside.authority.certificatePem];
  return inside;
}

const isOpening = (line: AuditAhead): line is AuditOpening => "opening" in line;

describe.each(Object.entries(ways))("%s", (_, way) => {
  test("is written down before it is let out, and its end names its beginning", async () => {
    const lines: AuditAhead[] = [];
    let before = 0;
    const ahead = (line: AuditAhead) => {
      before = dialled;
      return lines.push(line) > 0;
    };
    await using inside = await open(way, { ahead });
    const answer = await way.ask(inside);
    expect(answer).toMatch(/told|hello|binary/);
    if (way.port === echo) expect(dialled).toBe(before + 1);
    inside.gateway[Symbol.dispose]();
    const openings = lines.filter(isOpening);
    expect(openings).toMatchObject([{ opening: 1, host, rule: `rule for ${host}`, ...way.opening }]);
    expect(inside.audit.filter(({ opening }) => opening !== undefined)).toMatchObject([
      { opening: 1, verdict: "allowed", ...way.opening },
    ]);
  });

  test("is not let out where that cannot be written", async () => {
    const asked = dialled;
    await using inside = await open(way, { ahead: () => false });
    const answer = await way.ask(inside).catch(failing);
    expect(answer).not.toMatch(/told|hello|HTTP\/1.1 101|\0binary/);
    await expect.poll(() => inside.audit.at(-1)).toMatchObject({ verdict: "refused", reason: "audit" });
    expect(inside.audit.every(({ verdict, opening }) => verdict === "refused" && opening === undefined)).toBe(true);
    expect(dialled).toBe(asked);
  });
});

test("what goes on is told of now and then, as far as it has come", async () => {
  const way = ways["a tunnel"] as Way;
  const lines: AuditAhead[] = [];
  await using inside = await open(way, { ahead: (line) => lines.push(line) > 0, renewMs: 20 });
  const { socket } = await inside.connect(`${host}:5432`);
  socket.write("\0".repeat(1000));
  await expect.poll(() => lines.at(-1)).toMatchObject({ passing: 1, sent: 1000, received: 1000 });
  expect(lines[0]).toMatchObject({ opening: 1 });
  socket.destroy();
  await ended(socket);
});

test("what turns out to be requests is told of by what they are alone, since nothing was let out before", async () => {
  const lines: AuditAhead[] = [];
  const policy = policyOf([rule(host, { ports: [8443] })], { reach: { [host]: `127.0.0.1:${await web}` } });
  await using inside = new Inside(outside, policy, { ahead: (line) => lines.push(line) > 0, limits: { listenMs: 10 } });
  const socket = await inside.dial(host, 8443);
  await expect.poll(() => lines).toMatchObject([{ opening: 1, kind: "tcp" }]);
  const secure = connectTls({ socket, servername: host, ca: [outside.authority.certificatePem] });
  await say(secure, `GET / HTTP/1.1\r\nHost: ${host}:8443\r\nConnection: close\r\n\r\n`);
  await expect
    .poll(() => inside.audit)
    .toMatchObject([{ kind: "dns" }, { kind: "tls", verdict: "allowed", opening: 2 }]);
  expect(lines).toMatchObject([{ opening: 1 }, { dropped: 1 }, { opening: 2, kind: "tls" }]);
});

test("no secret is in any text of a line, however long that is", () => {
  const secret = "plain_Registered_Secret_9876543210";
  const said: (AuditEntry | AuditAhead)[] = [];
  const ledger = openLedger({
    audit: (entry) => said.push(entry),
    ahead: (line) => said.push(line) > 0,
    redact: (text) => text.replaceAll(secret, "[REDACTED]"),
    renewMs: 1_000,
  });
  const text = `x${secret}x`;
  const line = ledger.begin({ kind: "http", host: text, port: 443, method: text, path: text, rule: text });
  line.open();
  line.write({ verdict: "failed", reason: text });
  const long = ledger.begin({ kind: "http", host, port: 443, path: `/${"y".repeat(1_000)}${secret}` });
  long.write({ verdict: "failed", reason: `${"y".repeat(1_010)}${secret}` });
  ledger.close();
  expect(said).toMatchObject([
    { opening: 1, method: "x[REDACTED]x" },
    { opening: 1, host: "x[REDACTED]x", path: "x[REDACTED]x", rule: "x[REDACTED]x", reason: "x[REDACTED]x" },
    { path: expect.stringMatching(/y\[REDACTED\]$/), reason: expect.stringMatching(/y\[REDACTED\]$/) },
  ]);
  expect(JSON.stringify(said)).not.toContain("plain_");
});
