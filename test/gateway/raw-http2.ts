import type { Socket } from "node:net";

const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const end = { stream: 1, headers: 4 };
/** Names and values by their numbers in the table that HTTP/2 begins with. */
const get = Buffer.of(0x82);
const https = Buffer.of(0x87);
/** The first place of the table that a connection fills itself. */
const firstOwn = Buffer.of(0xbe);

/** A client of HTTP/2 that says what it likes, byte by byte, and acknowledges nothing. */
export class RawHttp2 {
  readonly socket: Socket;
  #stream = -1;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.write(Buffer.concat([preface, frame(4, 0, 0, Buffer.alloc(0))]));
  }

  /** GET /, with a header of that length, which is said once and then stood for by a byte each. */
  send(host: string, { long, repeats }: { readonly long: number; readonly repeats: number }): void {
    const head = Buffer.concat([
      headBlock(host, "/"),
      ...(this.#stream < 0 ? [Buffer.of(0x40), text("x-b"), text("z".repeat(long))] : []),
      ...Array.from({ length: repeats }, () => firstOwn),
    ]);
    this.#stream += 2;
    this.socket.write(frame(1, end.stream | end.headers, this.#stream, head));
  }

  /** The status that is answered first. */
  async ask(host: string, head: { readonly long: number; readonly repeats: number }): Promise<string> {
    const answer = readStatus(this.socket);
    this.send(host, head);
    return answer;
  }
}

/**
 * A server of HTTP/2 that acknowledges nothing. To each request it answers with these heads, each of which is a status
 * (or null for what follows a body) and stands so many times for a header of 3.9 kB by a byte each. Cookies are what is
 * joined to one, and so kept for itself.
 */
export function answerRaw(
  socket: Socket,
  heads: readonly { readonly status: number | null; readonly repeats: number }[],
): void {
  let seen = Buffer.alloc(0);
  let isOpen = false;
  let wasSaid = false;
  socket.write(frame(4, 0, 0, Buffer.alloc(0)));
  socket.on("data", (bytes) => {
    seen = Buffer.concat([seen, bytes]);
    if (!isOpen && seen.length >= preface.length) seen = seen.subarray(preface.length);
    else if (!isOpen) return;
    isOpen = true;
    while (seen.length >= 9 && seen.length >= 9 + seen.readUIntBE(0, 3)) {
      const [type, stream] = [seen[3], seen.readUInt32BE(5)];
      seen = seen.subarray(9 + seen.readUIntBE(0, 3));
      if (type !== 1) continue;
      for (const { status, repeats } of heads) {
        const long = Buffer.concat([Buffer.of(0x40), text("cookie"), text("z".repeat(3900))]);
        const block = [
          ...(status === null ? [] : [literal([":status", `${status}`])]),
          ...(repeats === 0 ? [] : [wasSaid ? firstOwn : long, ...Array.from({ length: repeats - 1 }, () => firstOwn)]),
        ];
        wasSaid ||= repeats > 0;
        socket.write(frame(1, end.headers | (status === null ? end.stream : 0), stream, Buffer.concat(block)));
        if ((status ?? 0) >= 200) socket.write(frame(0, 0, stream, Buffer.from("body")));
      }
    }
  });
}

/** Of the first frame with headers: 200 has a number of its own, others are no shorter in Huffman's code. */
async function readStatus(socket: Socket): Promise<string> {
  let seen = Buffer.alloc(0);
  return new Promise((resolve) => {
    const settle = (status: string) => {
      socket.off("data", onData).off("end", onEnd).off("close", onEnd);
      resolve(status);
    };
    const onEnd = () => settle("nothing");
    const onData = (bytes: Buffer) => {
      seen = Buffer.concat([seen, bytes]);
      while (seen.length >= 9 && seen.length >= 9 + seen.readUIntBE(0, 3)) {
        const content = seen.subarray(9, 9 + seen.readUIntBE(0, 3));
        const type = seen[3];
        seen = seen.subarray(9 + content.length);
        if (type === 3) return settle("reset");
        if (type === 1) return settle(content.includes(0x88) ? "200" : (/[1-5]\d\d/.exec(`${content}`)?.[0] ?? "odd"));
      }
    };
    socket.on("data", onData).on("end", onEnd).on("close", onEnd);
  });
}

/** The head of a GET. */
export function headBlock(host: string, path: string): Buffer {
  return Buffer.concat([get, https, field(0x04, path), field(0x01, host)]);
}

/** A name and a value that are in no table. */
export function literal([name, value]: readonly [name: string, value: string]): Buffer {
  return Buffer.concat([Buffer.of(0), text(name), text(value)]);
}

export function frame(type: number, flags: number, stream: number, content: Uint8Array): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(content.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, content]);
}

/** A value for a name of the table, which is not remembered. */
function field(name: number, value: string): Buffer {
  return Buffer.concat([Buffer.of(name), text(value)]);
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  if (bytes.length < 127) return Buffer.concat([Buffer.of(bytes.length), bytes]);
  const rest = bytes.length - 127;
  return Buffer.concat([Buffer.of(127, 0x80 | (rest & 127), rest >> 7), bytes]);
}
