// @module-tag security
import type { Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import * as fc from "fast-check";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import type { AuditEntry } from "../../src/gateway/audit.ts";
import { proxyPort } from "../../src/gateway/connection.ts";
import { bodyOf, Inside, Outside, policyOf, rule } from "./kit.ts";

const outside = new Outside();
afterAll(() => outside[Symbol.asyncDispose]());

const host = "api.example.com";
const reached: string[] = [];
const plain = outside.http(async (request, response) => {
  reached.push(`${request.headers.host}${request.url}`);
  response.end(await bodyOf(request));
});
const raw = outside.tcp((socket) => socket.pipe(socket));

/** Of this process, on whichever side. */
const connections = () => process.getActiveResourcesInfo().filter((each) => each === "TCPSocketWrap").length;

const escaped: unknown[] = [];
const note = (error: unknown) => void escaped.push(error);
beforeEach(() => {
  process.on("uncaughtException", note).on("unhandledRejection", note);
});
afterEach(() => {
  process.off("uncaughtException", note).off("unhandledRejection", note);
});

async function opened(ms = 20): Promise<Inside> {
  const policy = policyOf(
    [rule(host, { paths: ["/ok/**"], ports: [80, 443] }), rule("raw.example.com", { ports: [22] })],
    {
      reach: { [host]: `127.0.0.1:${await plain}`, "raw.example.com": `127.0.0.1:${await raw}` },
    },
  );
  return new Inside(outside, policy, {
    limits: { listenMs: 5, silenceMs: ms, beginningMs: ms, headMs: ms, lingerMs: ms },
  });
}

/** Says all of it in pieces, goes away after a while, and does not care. */
async function knockWith(inside: Inside, port: number, pieces: readonly Uint8Array[]): Promise<void> {
  const socket: Socket = await inside.knock(port);
  socket.resume();
  for (const piece of pieces) {
    if (socket.destroyed) break;
    socket.write(piece);
    await new Promise((resolve) => setImmediate(resolve));
  }
  socket.end();
  await new Promise((resolve) => {
    const timer = setTimeout(resolve, 30);
    socket.once("close", () => {
      clearTimeout(timer);
      resolve(undefined);
    });
  });
  socket.destroy();
}

const cut = (bytes: Buffer, places: readonly number[]): Buffer[] => {
  const at = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b);
  return [0, ...at].map((from, index) => bytes.subarray(from, at[index] ?? bytes.length));
};

const heads = [
  `GET http://${host}/ok/1 HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
  `POST http://${host}/ok/1 HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
  `POST http://${host}/ok/1 HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello`,
  `GET http://${host}/ok/ws HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\u0081\u0080abcd`,
  `GET http://${host}/ok/h2c HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n\r\n`,
  `CONNECT raw.example.com:22 HTTP/1.1\r\nHost: raw.example.com:22\r\n\r\nSSH-2.0-x\r\n`,
  `CONNECT ${host}:80 HTTP/1.1\r\nHost: ${host}:80\r\n\r\nGET /ok/1 HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
  `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n`,
].map((text) => Buffer.from(text, "latin1"));
/** The hello of a real client. */
const hello = await new Promise<Buffer>((resolve) => {
  const server = outside.tcp((socket) => {
    socket.once("data", (bytes) => {
      resolve(bytes);
      socket.destroy();
    });
  });
  void server.then((port) => {
    const options = { host: "127.0.0.1", port, servername: host, ALPNProtocols: ["h2", "http/1.1"] };
    connectTls(options).on("error", () => {});
  });
});
const seeds = [...heads, hello];

const insertions = [
  "\r\n",
  "\n",
  "\r",
  "\u0000",
  " ",
  "\t",
  ":",
  "%",
  "\u00ff",
  "Host: x\r\n",
  "Content-Length: 1\r\n",
  "Connection: close\r\n",
];

/** One that might have come, with some of its bytes changed, left out, doubled, or put in. */
const mutated = fc
  .record({
    first: fc.constantFrom(...seeds),
    second: fc.option(fc.constantFrom(...heads)),
    changes: fc.array(
      fc.record({
        at: fc.nat(400),
        kind: fc.constantFrom("set", "cut", "double", "insert"),
        byte: fc.nat(255),
        length: fc.nat(12),
        text: fc.constantFrom(...insertions),
      }),
      { maxLength: 5 },
    ),
  })
  .map(({ first, second, changes }) => {
    let bytes = second === null ? first : Buffer.concat([first, second]);
    for (const { at: place, kind, byte, length, text } of changes) {
      const at = place % (bytes.length + 1);
      const [before, after] = [bytes.subarray(0, at), bytes.subarray(at)];
      if (kind === "set") bytes = Buffer.concat([before, Buffer.of(byte), after.subarray(1)]);
      if (kind === "cut") bytes = Buffer.concat([before, after.subarray(length)]);
      if (kind === "double") bytes = Buffer.concat([before, after.subarray(0, length), after]);
      if (kind === "insert") bytes = Buffer.concat([before, Buffer.from(text, "latin1"), after]);
    }
    return bytes;
  });

const ports = fc.constantFrom(22, 80, 443, proxyPort, 53);
const places = fc.array(fc.nat(500), { maxLength: 4 });

describe("whatever is said at a door", () => {
  test.each([
    ["random bytes", fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes))],
    ["what is almost right", mutated],
    [
      "a TLS record of anything",
      fc.uint8Array({ maxLength: 200 }).map((rest) => Buffer.concat([hello.subarray(0, 9), rest])),
    ],
  ])("nothing escapes, nothing stays open, and no other host is reached: %s", async (_, bytes) => {
    const before = connections();
    const audit: AuditEntry[] = [];
    {
      await using inside = await opened();
      const all = fc.sample(fc.tuple(ports, bytes, places), 300);
      // Many at once, as a box would.
      for (let at = 0; at < all.length; at += 30) {
        await Promise.all(
          all.slice(at, at + 30).map(([port, said, where]) => knockWith(inside, port, cut(said, where))),
        );
      }
      audit.push(...inside.audit);
    }
    await expect.poll(connections).toBeLessThanOrEqual(before);
    expect(escaped).toEqual([]);
    expect(audit.length).toBeGreaterThan(100);
    for (const line of audit) {
      expect(["allowed", "refused", "failed"]).toContain(line.verdict);
      if (line.verdict === "allowed" && line.kind !== "dns") expect([host, "raw.example.com"]).toContain(line.host);
    }
    expect(
      reached.filter((each) => !each.toLowerCase().startsWith(`${host}/ok/`) && !each.startsWith(`${host}:80/ok/`)),
    ).toEqual([]);
  });

  test.each(["h2", "http/1.1"])("the same holds within TLS: %s", async (protocol) => {
    const before = connections();
    {
      // Handshakes take their time.
      await using inside = await opened(5_000);
      const preface = Buffer.from(protocol === "h2" ? "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" : "");
      const frame = fc
        .tuple(fc.uint8Array({ maxLength: 60 }), fc.nat(12), fc.nat(255), fc.nat(9))
        .map(([content, type, flags, stream]) =>
          Buffer.concat([Buffer.of(0, 0, content.length, type, flags, 0, 0, 0, stream), content]),
        );
      const settings = Buffer.from("000000040000000000", "hex");
      const said =
        protocol === "h2" ? fc.array(frame, { maxLength: 6 }).map((all) => Buffer.concat([settings, ...all])) : mutated;
      for (const bytes of fc.sample(said, 100)) {
        const secure = await inside.secure(host, { alpn: [protocol] });
        secure.resume();
        secure.write(Buffer.concat([preface, bytes]));
        await new Promise((resolve) => setTimeout(resolve, 3));
        secure.destroy();
      }
    }
    await expect.poll(connections).toBeLessThanOrEqual(before);
    expect(escaped).toEqual([]);
  });

  test("the proper ones among them do arrive", async () => {
    await using inside = await opened();
    const before = reached.length;
    for (const head of heads.slice(0, 3)) await knockWith(inside, proxyPort, [head]);
    expect(reached.length).toBeGreaterThan(before);
  });
});
