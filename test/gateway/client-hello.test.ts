import { execFile } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { connect } from "node:tls";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readClientHello } from "../../src/gateway/client-hello.ts";

const host = "api.example.com";

const python = `
import socket, ssl, sys
context = ssl.create_default_context()
context.set_alpn_protocols(["http/1.1"])
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as plain:
    context.wrap_socket(plain, server_hostname=sys.argv[2])
`;

const quietly = (program: string, args: readonly string[]) => {
  execFile(program, args, () => {}).stdin?.end();
};

interface Client {
  readonly say: (port: number) => void;
  readonly serverName: string | null;
  readonly alpn: readonly string[];
}

/** What real programs say first. */
const clients: Readonly<Record<string, Client>> = {
  node: {
    say: (port) => connect({ port, host: "127.0.0.1", servername: host, ALPNProtocols: ["h2"] }).on("error", () => {}),
    serverName: host,
    alpn: ["h2"],
  },
  "node, of an address": {
    say: (port) => connect({ port, host: "127.0.0.1" }).on("error", () => {}),
    serverName: null,
    alpn: [],
  },
  curl: {
    say: (port) => {
      const resolved = ["--resolve", `${host}:${port}:127.0.0.1`, `https://${host}:${port}/`];
      quietly("curl", ["-s", "--noproxy", "*", "--http1.1", ...resolved]);
    },
    serverName: host,
    alpn: ["http/1.1"],
  },
  openssl: {
    say: (port) => {
      quietly("openssl", ["s_client", "-connect", `127.0.0.1:${port}`, "-servername", "API.example.COM"]);
    },
    serverName: host,
    alpn: [],
  },
  "openssl, of TLS 1.2": {
    say: (port) => {
      quietly("openssl", ["s_client", "-tls1_2", "-connect", `127.0.0.1:${port}`, "-noservername"]);
    },
    serverName: null,
    alpn: [],
  },
  python: {
    say: (port) => quietly("python3", ["-c", python, `${port}`, host]),
    serverName: host,
    alpn: ["http/1.1"],
  },
};

const server = createServer();
let port = 0;
beforeAll(async () => {
  await once(server.listen(0, "127.0.0.1"), "listening");
  port = (server.address() as AddressInfo).port;
});
afterAll(() => {
  server.close();
});

/** All that a client sends before it is answered. */
async function capture(client: Client): Promise<Buffer> {
  const arrived = once(server, "connection");
  client.say(port);
  const [socket] = (await arrived) as [Socket];
  let bytes: Buffer = Buffer.alloc(0);
  for await (const chunk of socket.on("error", () => {})) {
    bytes = Buffer.concat([bytes, chunk]);
    if (bytes.length >= 5 && bytes.length >= 5 + bytes.readUInt16BE(3)) break;
  }
  return bytes;
}

function record(fragment: Uint8Array): Buffer {
  return Buffer.concat([Buffer.of(22, 3, 1, fragment.length >> 8, fragment.length & 0xff), fragment]);
}

describe.each(Object.entries(clients))("the hello of %s", (_, client) => {
  let bytes: Buffer;
  beforeAll(async () => {
    bytes = await capture(client);
  });

  test("is read", () => {
    const { serverName, alpn } = client;
    expect(readClientHello(bytes)).toEqual({ kind: "hello", serverName, alpn });
    // What a client adds before it is answered is not part of it.
    expect(readClientHello(Buffer.concat([bytes, Buffer.of(23, 3, 3, 0, 1, 0)])).kind).toBe("hello");
  });

  test("is not read before its last byte", () => {
    for (let length = 0; length < bytes.length; length += 1) {
      expect(readClientHello(bytes.subarray(0, length))).toEqual({ kind: "more" });
    }
  });

  test("may be cut into records anywhere", () => {
    const whole = readClientHello(bytes);
    const message = bytes.subarray(5);
    fc.assert(
      fc.property(fc.uniqueArray(fc.integer({ min: 1, max: message.length - 1 }), { maxLength: 60 }), (cuts) => {
        const places = [0, ...cuts.sort((one, other) => one - other), message.length];
        const records = places.slice(1).map((end, index) => record(message.subarray(places[index], end)));
        expect(readClientHello(Buffer.concat(records))).toEqual(whole);
        expect(readClientHello(Buffer.concat(records.slice(0, -1)))).toEqual({ kind: "more" });
      }),
    );
  });

  test("never does harm, however damaged", () => {
    const change = fc.tuple(fc.nat(bytes.length - 1), fc.nat(255));
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 8 }), fc.nat(bytes.length), (changes, length) => {
        const damaged = Buffer.from(bytes);
        for (const [at, byte] of changes) damaged[at] = byte;
        // Beyond its end lies more, which is not to be looked at.
        const reading = readClientHello(damaged.subarray(0, length));
        expect(readClientHello(Buffer.from(damaged.subarray(0, length)))).toEqual(reading);
        if (reading.kind === "hello") expect(reading.serverName ?? "").toMatch(/^[0-9a-z:._-]*$/);
      }),
      { numRuns: 500 },
    );
  });
});

const vector = (size: number, content: Uint8Array) => {
  const length = Buffer.alloc(size);
  length.writeUIntBE(content.length, 0, size);
  return Buffer.concat([length, content]);
};
const extension = (type: number, content: Uint8Array) =>
  Buffer.concat([Buffer.of(type >> 8, type & 0xff), vector(2, content)]);
const named = (name: string, type = 0) => Buffer.concat([Buffer.of(type), vector(2, Buffer.from(name, "latin1"))]);
const serverNames = (...names: readonly Uint8Array[]) => extension(0, vector(2, Buffer.concat(names)));
const protocols = (...list: readonly string[]) => {
  return extension(16, vector(2, Buffer.concat(list.map((each) => vector(1, Buffer.from(each))))));
};

/** A hello by hand, with these extensions and, if so, something after them. */
function hello(extensions: readonly Uint8Array[] | null, after = ""): Buffer {
  const list = extensions === null ? Buffer.alloc(0) : vector(2, Buffer.concat(extensions));
  const fixed = [Buffer.of(3, 3), Buffer.alloc(32), vector(1, Buffer.alloc(32)), vector(2, Buffer.of(0x13, 1))];
  const body = Buffer.concat([...fixed, vector(1, Buffer.of(0)), list, Buffer.from(after)]);
  return Buffer.concat([Buffer.of(1), vector(3, body)]);
}

describe("a hello by hand", () => {
  test.each<[string, Buffer, { serverName: string | null; alpn: readonly string[] }]>([
    ["with a name", hello([serverNames(named("a.example"))]), { serverName: "a.example", alpn: [] }],
    ["in capitals", hello([serverNames(named("A.Example"))]), { serverName: "a.example", alpn: [] }],
    ["with protocols", hello([protocols("h2", "http/1.1")]), { serverName: null, alpn: ["h2", "http/1.1"] }],
    ["without extensions", hello(null), { serverName: null, alpn: [] }],
    ["with none of them", hello([]), { serverName: null, alpn: [] }],
    [
      "with another, encrypted one within, is that of the outer one",
      hello([extension(0xfe0d, Buffer.alloc(200, 7)), serverNames(named("outer.example"))]),
      { serverName: "outer.example", alpn: [] },
    ],
  ])("%s", (_, message, expected) => {
    expect(readClientHello(record(message))).toEqual({ kind: "hello", ...expected });
  });

  test.each<[string, Buffer]>([
    ["names two hosts", hello([serverNames(named("a.example"), named("b.example"))])],
    ["names the same host twice", hello([serverNames(named("a.example"), named("a.example"))])],
    ["names hosts in two places", hello([serverNames(named("a.example")), serverNames(named("a.example"))])],
    ["names something that is no host", hello([serverNames(named("a.example", 1))])],
    ["names none", hello([serverNames()])],
    ["has an empty list of names", hello([extension(0, Buffer.alloc(0))])],
    ["names an empty one", hello([serverNames(named(""))])],
    [
      "has a list of names that is too long",
      hello([extension(0, vector(2, vector(2, Buffer.alloc(9))).subarray(0, 5))]),
    ],
    [
      "has something after its name",
      hello([extension(0, Buffer.concat([vector(2, named("a.example")), Buffer.of(0)]))]),
    ],
    ["has a dot at the end", hello([serverNames(named("a.example."))])],
    ["has a space", hello([serverNames(named("a .example"))])],
    ["has a zero", hello([serverNames(named("a.example\0.b"))])],
    ["has a star", hello([serverNames(named("*.example"))])],
    ["has a letter beyond ASCII", hello([serverNames(named("b\xfccher.example"))])],
    ["has an odd address", hello([serverNames(named("0x7f.1"))])],
    ["has an extension twice", hello([extension(43, Buffer.alloc(1)), extension(43, Buffer.alloc(1))])],
    ["has an extension that is cut off", hello([Buffer.of(0, 43, 0, 9, 1)])],
    ["has something after the extensions", hello([], "x")],
    ["has extensions that are cut off", hello(null, "\0\x05")],
    ["has nothing in it", Buffer.of(1, 0, 0, 0)],
    ["has no protocols in their list", hello([protocols()])],
    ["has an empty protocol", hello([protocols("h2", "")])],
    ["has a protocol that is cut off", hello([extension(16, vector(2, Buffer.of(9, 1)))])],
    ["has protocols that are cut off", hello([extension(16, Buffer.of(0, 9, 1, 65))])],
    [
      "has something after its protocols",
      hello([extension(16, Buffer.concat([vector(2, Buffer.of(1, 65)), Buffer.of(0)]))]),
    ],
  ])("that %s is bad", (_, message) => {
    expect(readClientHello(record(message))).toEqual({ kind: "bad", why: expect.any(String) });
  });

  test("has a control: the same by hand, with nothing wrong, is read", () => {
    const extensions = [serverNames(named("a.example")), protocols("h2"), extension(43, Buffer.alloc(1))];
    expect(readClientHello(record(hello(extensions))).kind).toBe("hello");
  });
});

describe("what is no hello", () => {
  test.each<[string, Uint8Array]>([
    ["HTTP", Buffer.from("GET / HTTP/1.1\r\n")],
    ["SSH", Buffer.from("SSH-2.0-x\r\n")],
    ["an alert", Buffer.of(21, 3, 1, 0, 2, 1, 0)],
    ["SSL 2", Buffer.of(0x80, 0x2e, 1, 3, 1)],
    ["another version", Buffer.of(22, 2)],
    ["a version of the future", Buffer.of(22, 3, 5)],
    ["the hello of a server", Buffer.of(22, 3, 3, 0, 4, 2)],
    ["an empty record", Buffer.of(22, 3, 1, 0, 0)],
    ["a record of more than 16 KiB", Buffer.concat([Buffer.of(22, 3, 1, 0x40, 1), Buffer.alloc(16_385, 1)])],
    ["a message of more than 64 KiB", record(Buffer.of(1, 1, 0, 0))],
    ["two messages in one record", record(Buffer.concat([hello([]), hello([])]))],
    ["another message within", Buffer.concat([record(hello([]).subarray(0, 9)), Buffer.of(23, 3, 3, 0, 1, 0)])],
  ])("is bad: %s", (_, bytes) => {
    expect(readClientHello(bytes)).toEqual({ kind: "bad", why: expect.any(String) });
  });

  test("is bad where it takes more than 64 KiB, or too many pieces", () => {
    const message = hello([extension(21, Buffer.alloc(65_300))]);
    const pieces = [0, 1, 2, 3].map((index) => record(message.subarray(index * 16_384, (index + 1) * 16_384)));
    const whole = Buffer.concat(pieces);
    expect(readClientHello(whole).kind).toBe("hello");
    expect(readClientHello(Buffer.concat([whole.subarray(0, -1)])).kind).toBe("more");
    const slow = Buffer.concat([...pieces.slice(0, 3), Buffer.of(22, 3, 1, 0x40, 0), Buffer.alloc(16_383)]);
    expect(readClientHello(slow)).toEqual({ kind: "bad", why: "its hello is too long" });
    const crumbs = [...message.subarray(0, 65)].map((byte) => record(Buffer.of(byte)));
    expect(readClientHello(Buffer.concat(crumbs.slice(0, 64))).kind).toBe("more");
    expect(readClientHello(Buffer.concat(crumbs)).kind).toBe("bad");
  });

  test("never does harm", () => {
    const start = fc.constantFrom([], [22], [22, 3, 1], [22, 3, 1, 0, 200, 1, 0, 0, 196]);
    fc.assert(
      fc.property(start, fc.uint8Array({ maxLength: 400 }), (first, rest) => {
        expect(readClientHello(Uint8Array.from([...first, ...rest])).kind).toMatch(/^(more|bad|hello)$/);
      }),
      { numRuns: 2000 },
    );
  });
});
