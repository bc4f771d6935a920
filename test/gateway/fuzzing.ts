import type { Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import * as fc from "fast-check";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import type { AuditEntry } from "../../src/gateway/audit.ts";
import { readClientHello } from "../../src/gateway/client-hello.ts";
import { proxyPort } from "../../src/gateway/connection.ts";
import { bodyOf, Inside, Outside, policyOf, readUntil, rule } from "./kit.ts";
import { frame, headBlock, literal } from "./raw-http2.ts";

const outside = new Outside();

const host = "api.example.com";
const reached: string[] = [];
const plain = outside.http(async (request, response) => {
  reached.push(`${request.headers.host}${request.url}`);
  response.end(await bodyOf(request));
});
const granting = outside.tcp((socket) => {
  socket.once("data", () => {
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    socket.pipe(socket);
  });
});
const raw = outside.tcp((socket) => socket.pipe(socket));

/** Of this process, on whichever side. */
const connections = () => process.getActiveResourcesInfo().filter((each) => each === "TCPSocketWrap").length;

const escaped: unknown[] = [];
const note = (error: unknown) => void escaped.push(error);

/** This process is the gateway, its box and the world, and may hold what they hold together. */
const mostGrownBytes = 256 << 20;

async function opened(ms = 20): Promise<Inside> {
  const policy = policyOf(
    [
      rule(host, { paths: ["/ok/**"], ports: [80, 443] }),
      rule("raw.example.com", { ports: [22] }),
      rule("ws.example.com", { paths: ["/ok/**"] }),
    ],
    {
      reach: {
        [host]: `127.0.0.1:${await plain}`,
        "raw.example.com": `127.0.0.1:${await raw}`,
        "ws.example.com": `127.0.0.1:${await granting}`,
      },
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

/** Frames of HTTP/2 that may be right: with heads that are almost so, and any content elsewhere. */
const fields = fc.array(
  fc.oneof(
    fc.tuple(fc.constantFrom("x-a", ":path", ":method", "host", "content-length", "te", "X"), fc.string()).map(literal),
    fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes)),
    fc.constant(Buffer.of(0xbe)),
  ),
  { maxLength: 8 },
);
const stream = fc.constantFrom(0, 1, 3, 5, 7);
const flags = fc.constantFrom(0, 1, 4, 5, 8, 0x20, 0xff);
const framed = fc.array(
  fc.oneof(
    fc
      .tuple(flags, stream, fields)
      .map(([flag, id, more]) => frame(1, flag, id, Buffer.concat([headBlock(host, "/ok/1"), ...more]))),
    fc.tuple(fc.nat(12), flags, stream, fc.uint8Array({ maxLength: 60 })).map((parts) => frame(...parts)),
    fc.tuple(flags, stream, fields).map(([flag, id, more]) => frame(9, flag, id, Buffer.concat(more))),
  ),
  { maxLength: 8 },
);
const preface = Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(4, 0, 0, Buffer.alloc(0))]);

/** A question for a name, with some of its bytes changed. */
const question = Buffer.from(
  "\u0012\u0034\u0001\0\0\u0001\0\0\0\0\0\0\u0003api\u0007example\u0003com\0\0\u0001\0\u0001",
  "latin1",
);
const changedFrom = (whole: Buffer) =>
  fc
    .tuple(
      fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { maxLength: 6 }),
      fc.nat(whole.length),
      fc.uint8Array({ maxLength: 40 }),
    )
    .map(([changes, length, more]) => {
      const bytes = Buffer.from(whole);
      for (const [at, byte] of changes) bytes[at] = byte;
      return Buffer.concat([bytes.subarray(0, length), more]);
    });

/** `count` times of each kind, all of them from one seed, which the names of the tests tell. */
export function fuzzDoors({ count, seed }: { readonly count: number; readonly seed: number }): void {
  afterAll(() => outside[Symbol.asyncDispose]());
  beforeEach(() => {
    process.on("uncaughtException", note).on("unhandledRejection", note);
  });
  afterEach(() => {
    process.off("uncaughtException", note).off("unhandledRejection", note);
  });
  const some = <T>(values: fc.Arbitrary<T>, numRuns = count) => fc.sample(values, { seed, numRuns });
  /** That nothing has escaped, that nothing stays open, and that little is held. */
  const harmless = async (work: () => Promise<void>) => {
    const [before, held] = [connections(), process.memoryUsage.rss()];
    await work();
    await expect.poll(connections).toBeLessThanOrEqual(before);
    expect(escaped).toEqual([]);
    expect(process.memoryUsage.rss() - held).toBeLessThan(mostGrownBytes);
  };
  /** Within TLS, on a few connections at once. */
  const withinTls = async (alpn: string, first: Buffer, said: readonly Buffer[]) => {
    // Handshakes take their time.
    await using inside = await opened(5_000);
    for (let at = 0; at < said.length; at += 10) {
      await Promise.all(
        said.slice(at, at + 10).map(async (bytes) => {
          const secure: TLSSocket = await inside.secure(host, { alpn: [alpn] });
          secure.resume();
          secure.write(Buffer.concat([first, bytes]));
          await new Promise((resolve) => setTimeout(resolve, 3));
          secure.destroy();
        }),
      );
    }
  };

  describe(`whatever is said at a door (seed ${seed})`, () => {
    test.each([
      ["random bytes", fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes))],
      ["what is almost right", mutated],
      [
        "a TLS record of anything",
        fc.uint8Array({ maxLength: 200 }).map((rest) => Buffer.concat([hello.subarray(0, 9), rest])),
      ],
      ["a hello that is almost right", changedFrom(hello)],
    ])("nothing escapes, nothing stays open, and no other host is reached: %s", async (_, bytes) => {
      const audit: AuditEntry[] = [];
      await harmless(async () => {
        await using inside = await opened();
        const all = some(fc.tuple(ports, bytes, places));
        // Many at once, as a box would.
        for (let at = 0; at < all.length; at += 30) {
          await Promise.all(
            all.slice(at, at + 30).map(([port, said, where]) => knockWith(inside, port, cut(said, where))),
          );
        }
        audit.push(...inside.audit);
      });
      expect(audit.length).toBeGreaterThan(count / 3);
      for (const line of audit) {
        expect(["allowed", "refused", "failed"]).toContain(line.verdict);
        if (line.verdict === "allowed" && line.kind !== "dns") expect([host, "raw.example.com"]).toContain(line.host);
      }
      expect(
        reached.filter((each) => !each.toLowerCase().startsWith(`${host}/ok/`) && !each.startsWith(`${host}:80/ok/`)),
      ).toEqual([]);
    });

    test("the same holds within TLS, for frames of HTTP/2 that are almost right", async () => {
      const said = some(framed, count / 3).map((frames) => Buffer.concat(frames));
      await harmless(() => withinTls("h2", preface, said));
    });

    test("the same holds within TLS, for HTTP/1.1", async () => {
      await harmless(() => withinTls("http/1.1", Buffer.alloc(0), some(mutated, count / 3)));
    });

    test("the same holds for what follows a WebSocket, which arrives as it is", async () => {
      await harmless(async () => {
        await using inside = await opened(5_000);
        for (const bytes of some(fc.uint8Array({ minLength: 1, maxLength: 300 }), count / 10)) {
          const socket = await inside.knock(proxyPort);
          const asking = "GET http://ws.example.com/ok/ws HTTP/1.1\r\nHost: ws.example.com\r\nConnection: Upgrade\r\n";
          socket.write(Buffer.concat([Buffer.from(`${asking}Upgrade: websocket\r\n\r\n`), bytes]));
          const said = Buffer.from(bytes).toString("latin1");
          expect(await readUntil(socket, `\r\n\r\n${said}`)).toMatch(/^HTTP\/1.1 101 /);
          socket.destroy();
        }
      });
    });

    test("every question for a name is answered shortly, or not at all", async () => {
      await harmless(async () => {
        await using inside = await opened();
        for (const packet of some(changedFrom(question), 10 * count)) {
          const reply = inside.gateway.answer(packet);
          if (reply !== null) expect(reply.length).toBeLessThanOrEqual(packet.length + 33);
        }
      });
    });

    test("every hello is read to an end, and one that is cut waits", () => {
      for (const bytes of some(changedFrom(hello), 10 * count)) {
        expect(["more", "hello", "bad"]).toContain(readClientHello(bytes).kind);
      }
      expect(readClientHello(hello)).toMatchObject({ kind: "hello", serverName: host });
      expect(readClientHello(hello.subarray(0, -1)).kind).toBe("more");
    });

    test("the proper ones among them do arrive", async () => {
      await using inside = await opened();
      const before = reached.length;
      for (const head of heads.slice(0, 3)) await knockWith(inside, proxyPort, [head]);
      expect(reached.length).toBeGreaterThan(before);
    });
  });
}

/** From the environment, to repeat what has failed; else another each time. */
export function newSeed(): number {
  return Number(process.env["PODBOT_FUZZ_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
}
