import { createSocket } from "node:dgram";
import { Resolver } from "node:dns/promises";
import type { AddressInfo } from "node:net";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { answerQuery, DnsStream } from "../../src/gateway/dns.ts";

const types = { A: 1, NS: 2, CNAME: 5, SOA: 6, PTR: 12, MX: 15, TXT: 16, AAAA: 28, SRV: 33, HTTPS: 65, ANY: 255 };
const codes = { none: 0, format: 1, unknown: 3, notImplemented: 4 };

/** Knows every name but those below "odd". */
const addressOf = (name: string) => (name.endsWith("odd") ? null : "198.18.7.9");

interface Parts {
  readonly id?: number;
  readonly flags?: number;
  readonly counts?: readonly [number, number, number, number];
  readonly name?: Uint8Array;
  readonly type?: number;
  readonly kind?: number;
  readonly rest?: Uint8Array;
}

function encodeName(name: string): Buffer {
  const labels = name.split(".").filter((label) => label !== "");
  return Buffer.concat([
    ...labels.map((label) => Buffer.from([label.length, ...Buffer.from(label, "latin1")])),
    Buffer.of(0),
  ]);
}

function encodeQuery(parts: Parts = {}): Buffer {
  const { id = 0x1234, flags = 0x0100, counts = [1, 0, 0, parts.rest === undefined ? 0 : 1] } = parts;
  const { name = encodeName("api.example.com"), type = types.A, kind = 1, rest = Buffer.alloc(0) } = parts;
  const numbers = (...values: number[]) => Buffer.concat(values.map((value) => Buffer.of(value >> 8, value & 0xff)));
  return Buffer.concat([numbers(id, flags, ...counts), name, numbers(type, kind), rest]);
}

/** EDNS, as a client says that it speaks it. */
function encodeOptions({ version = 0, length = 0, type = 41, name = 0 } = {}, content = Buffer.alloc(length)): Buffer {
  return Buffer.concat([Buffer.of(name, 0, type, 0x10, 0, 0, version, 0x80, 0, length >> 8, length & 0xff), content]);
}

interface Decoded {
  readonly id: number;
  readonly flags: number;
  readonly code: number;
  readonly question: Buffer;
  readonly records: readonly { readonly type: number; readonly ttl: number; readonly content: Buffer }[];
  readonly counts: readonly number[];
}

/** Reads a reply by itself: to the last byte, or it fails. */
function decode(bytes: Uint8Array): Decoded {
  const reply = Buffer.from(bytes);
  const counts = [4, 6, 8, 10].map((at) => reply.readUInt16BE(at));
  let at = 12;
  const skipName = () => {
    while (reply.readUInt8(at) !== 0) {
      if (reply.readUInt8(at) >= 0xc0) {
        expect(reply.readUInt16BE(at)).toBe(0xc00c);
        at += 1;
        break;
      }
      at += 1 + reply.readUInt8(at);
    }
    at += 1;
  };
  if (counts[0] === 1) {
    skipName();
    at += 4;
  }
  const question = reply.subarray(12, at);
  const records = Array.from({ length: (counts[1] ?? 0) + (counts[2] ?? 0) + (counts[3] ?? 0) }, () => {
    skipName();
    const [type, ttl, length] = [reply.readUInt16BE(at), reply.readUInt32BE(at + 4), reply.readUInt16BE(at + 8)];
    at += 10 + length;
    return { type, ttl, content: reply.subarray(at - length, at) };
  });
  expect(at).toBe(reply.length);
  return {
    id: reply.readUInt16BE(0),
    flags: reply.readUInt8(2),
    code: reply.readUInt8(3) & 15,
    question,
    records,
    counts,
  };
}

function ask(query: Uint8Array): Decoded & { readonly asked: unknown } {
  const answer = answerQuery(query, addressOf);
  expect(answer).not.toBeNull();
  return { ...decode(answer?.reply as Uint8Array), asked: answer?.question };
}

describe("a query", () => {
  test("for an address gets the one that the name has", () => {
    const { code, records, asked, id, flags } = ask(encodeQuery());
    expect({ code, id, flags, asked }).toEqual({
      code: 0,
      id: 0x1234,
      flags: 0x81,
      asked: { name: "api.example.com", type: 1 },
    });
    expect(records).toEqual([{ type: 1, ttl: 60, content: Buffer.of(198, 18, 7, 9) }]);
  });

  test("has its capitals echoed, though names are known without", () => {
    const seen: string[] = [];
    const query = encodeQuery({ name: encodeName("aPi.ExAmPlE.CoM") });
    const answer = answerQuery(query, (name) => {
      seen.push(name);
      return "198.18.0.2";
    });
    expect(seen).toEqual(["api.example.com"]);
    expect(decode(answer?.reply as Uint8Array).question).toEqual(query.subarray(12));
  });

  test.each(Object.entries(types).filter(([name]) => name !== "A"))("for %s gets nothing, to remember", (_, type) => {
    const { code, records, counts, asked } = ask(encodeQuery({ type }));
    expect(code).toBe(codes.none);
    expect(asked).toEqual({ name: "api.example.com", type });
    expect(counts).toEqual([1, 0, 1, 0]);
    expect(records).toMatchObject([{ type: types.SOA, ttl: 60 }]);
    expect(records[0]?.content.readUInt32BE(18)).toBe(60);
  });

  test.each([types.A, types.AAAA])("of type %d for a name that is none says so", (type) => {
    const { code, counts, asked } = ask(encodeQuery({ name: encodeName("very.odd"), type }));
    expect(code).toBe(codes.unknown);
    expect(counts).toEqual([1, 0, 1, 0]);
    expect(asked).toEqual({ name: "very.odd", type });
  });

  test.each(["localhost", "LocalHost", "odd.localhost"])("for %s leads to this box", (name) => {
    expect(ask(encodeQuery({ name: encodeName(name) })).records[0]?.content).toEqual(Buffer.of(127, 0, 0, 1));
    expect(ask(encodeQuery({ name: encodeName(name), type: types.AAAA })).counts).toEqual([1, 0, 1, 0]);
  });

  test("for notlocalhost leads elsewhere", () => {
    expect(ask(encodeQuery({ name: encodeName("notlocalhost") })).records[0]?.content[0]).toBe(198);
  });

  test("for the root gets nothing", () => {
    const { code, asked } = ask(encodeQuery({ name: Buffer.of(0) }));
    expect({ code, asked }).toEqual({ code: codes.none, asked: { name: "", type: 1 } });
  });

  test("that speaks EDNS is answered so, and no other is", () => {
    const { records, counts } = ask(encodeQuery({ rest: encodeOptions() }));
    expect(counts).toEqual([1, 1, 0, 1]);
    expect(records[1]).toEqual({ type: 41, ttl: 0, content: Buffer.alloc(0) });
    expect(ask(encodeQuery({ rest: encodeOptions({ length: 12 }) })).counts).toEqual([1, 1, 0, 1]);
    expect(ask(encodeQuery({ type: types.TXT, rest: encodeOptions() })).counts).toEqual([1, 0, 1, 1]);
    expect(ask(encodeQuery()).counts).toEqual([1, 1, 0, 0]);
  });

  test("of a later EDNS is told so", () => {
    const { code, records } = ask(encodeQuery({ rest: encodeOptions({ version: 1 }) }));
    expect(code).toBe(0);
    expect(records).toEqual([{ type: 41, ttl: 0x01000000, content: Buffer.alloc(0) }]);
  });

  test("of another class, or another kind, is not implemented", () => {
    const chaos = ask(encodeQuery({ kind: 3 }));
    expect(chaos).toMatchObject({ code: codes.notImplemented, counts: [1, 0, 0, 0] });
    for (const flags of [0x2900, 0x0900]) {
      const update = ask(encodeQuery({ flags }));
      expect(update).toMatchObject({ code: codes.notImplemented, counts: [0, 0, 0, 0], asked: null });
    }
  });

  test.each<[string, Parts]>([
    ["no question", { counts: [0, 0, 0, 0] }],
    ["two questions", { counts: [2, 0, 0, 0] }],
    ["an answer", { counts: [1, 1, 0, 0] }],
    ["an authority", { counts: [1, 0, 1, 0] }],
    ["two additions", { counts: [1, 0, 0, 2], rest: Buffer.concat([encodeOptions(), encodeOptions()]) }],
    ["an addition that is none", { counts: [1, 0, 0, 1] }],
    ["an addition of another type", { rest: encodeOptions({ type: 1 }) }],
    ["options of a name", { rest: encodeOptions({ name: 1 }) }],
    ["options longer than they are", { rest: encodeOptions({ length: 4 }, Buffer.alloc(3)) }],
    ["options shorter than they are", { rest: encodeOptions({ length: 4 }, Buffer.alloc(5)) }],
    ["something after it", { counts: [1, 0, 0, 0], rest: Buffer.of(0) }],
    ["more than 4096 bytes", { rest: encodeOptions({ length: 4096 }) }],
    ["a pointer in its name", { name: Buffer.of(3, 97, 98, 99, 0xc0, 0x0c) }],
    ["a pointer to itself", { name: Buffer.of(0xc0, 0x0c) }],
    ["a label of 64", { name: Buffer.of(64, ...Buffer.alloc(64, "a"), 0) }],
    ["a label of 128", { name: Buffer.of(128, ...Buffer.alloc(128, "a"), 0) }],
    ["a name of 256", { name: encodeName([63, 63, 63, 62].map((length) => "a".repeat(length)).join(".")) }],
    ["a name without an end", { name: Buffer.alloc(0), type: 0x0161, kind: 0x0161 }],
    ["a space", { name: encodeName("a b.example") }],
    ["a zero", { name: encodeName("a\0.example") }],
    ["a letter beyond ASCII", { name: encodeName("b\xfccher.example") }],
    ["a dot within a label", { name: Buffer.of(3, 97, 0x2e, 98, 0) }],
  ])("with %s is no good form", (_, parts) => {
    expect(ask(encodeQuery(parts))).toMatchObject({
      code: codes.format,
      counts: [0, 0, 0, 0],
      asked: null,
      id: 0x1234,
    });
  });

  test("with a name of 255 is as good as any", () => {
    const name = [63, 63, 63, 61].map((length) => "a".repeat(length)).join(".");
    expect(ask(encodeQuery({ name: encodeName(name) })).asked).toEqual({ name, type: 1 });
  });

  test("that is cut short anywhere is no good form, or none at all", () => {
    for (const query of [encodeQuery(), encodeQuery({ rest: encodeOptions({ length: 4 }) })]) {
      for (let length = 0; length < query.length; length += 1) {
        const answer = answerQuery(query.subarray(0, length), addressOf);
        if (length < 12) expect(answer).toBeNull();
        else expect(decode(answer?.reply as Uint8Array).code).toBe(codes.format);
      }
    }
  });
});

describe("whatever comes", () => {
  const mutated = fc
    .tuple(
      fc.record({
        name: fc.oneof(fc.domain(), fc.string()).map((name) => encodeName(name.slice(0, 60))),
        type: fc.nat(300),
        rest: fc.constantFrom(undefined, encodeOptions(), encodeOptions({ length: 10 })),
      }),
      fc.array(fc.tuple(fc.nat(80), fc.nat(255)), { maxLength: 6 }),
      fc.option(fc.nat(80)),
    )
    .map(([{ name, type, rest }, changes, cut]) => {
      const query = encodeQuery({ name, type, ...(rest === undefined ? {} : { rest }) });
      for (const [at, byte] of changes) if (at < query.length) query[at] = byte;
      return cut === null ? query : query.subarray(0, cut);
    });

  test("gets a reply that can be read, that is hardly longer, and that is for it alone; or none", () => {
    fc.assert(
      fc.property(fc.oneof(mutated, fc.uint8Array({ maxLength: 600 })), (bytes) => {
        const answer = answerQuery(bytes, addressOf);
        const isNone = bytes.length < 12 || ((bytes[2] as number) & 0x80) !== 0;
        expect(answer === null).toBe(isNone);
        if (answer === null) return;
        const { id, flags } = decode(answer.reply);
        expect(id).toBe(Buffer.from(bytes).readUInt16BE(0));
        expect(flags & 0x80).toBe(0x80);
        expect(answer.reply.length).toBeLessThanOrEqual(bytes.length + 33);
        expect(answer.question?.name ?? "").toMatch(/^[!-@[-~]*$/);
      }),
      { numRuns: 2000 },
    );
  });
});

describe("a resolver", () => {
  const socket = createSocket("udp4");
  const resolver = new Resolver({ timeout: 5000, tries: 1 });
  beforeAll(async () => {
    socket.on("message", (packet, { port, address }) => {
      const answer = answerQuery(packet, addressOf);
      if (answer !== null) socket.send(answer.reply, port, address);
    });
    await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
    resolver.setServers([`127.0.0.1:${(socket.address() as AddressInfo).port}`]);
  });
  afterAll(() => {
    socket.close();
  });

  test("finds the address and nothing else", async () => {
    expect(await resolver.resolve4("api.example.com", { ttl: true })).toEqual([{ address: "198.18.7.9", ttl: 60 }]);
    for (const type of ["AAAA", "MX", "TXT", "SRV", "NS", "CAA"]) {
      await expect(resolver.resolve("api.example.com", type)).rejects.toMatchObject({ code: "ENODATA" });
    }
    await expect(resolver.reverse("198.18.7.9")).rejects.toMatchObject({ code: expect.stringMatching(/^ENO/) });
    await expect(resolver.resolve4("very.odd")).rejects.toMatchObject({ code: "ENOTFOUND" });
  });
});

describe("a stream", () => {
  const framed = (packet: Uint8Array) => Buffer.concat([Buffer.of(packet.length >> 8, packet.length & 0xff), packet]);

  test("gives its queries, however it was cut", () => {
    const packets = fc.array(fc.uint8Array({ minLength: 12, maxLength: 50 }));
    fc.assert(
      fc.property(packets, fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }), (all, sizes) => {
        const bytes = Buffer.concat(all.map(framed));
        const stream = new DnsStream();
        const found: Buffer[] = [];
        for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
          const size = sizes[turn % sizes.length] as number;
          found.push(...stream.push(bytes.subarray(at, at + size)).map((packet) => Buffer.from(packet)));
          at += size;
        }
        expect(found).toEqual(all.map((packet) => Buffer.from(packet)));
      }),
    );
  });

  test.each([0, 11, 4097, 65_535])("ends at a length of %d, after what came before", (length) => {
    const stream = new DnsStream();
    const query = encodeQuery();
    const wrong = Buffer.of(length >> 8, length & 0xff);
    const found = stream.push(Buffer.concat([framed(query), wrong, framed(query)]));
    expect(found.map((packet) => Buffer.from(packet))).toEqual([query, Buffer.alloc(0)]);
    expect(answerQuery(found[1] as Uint8Array, addressOf)).toBeNull();
    expect(stream.push(framed(query))).toEqual([]);
  });
});
