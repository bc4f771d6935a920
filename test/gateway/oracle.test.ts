// @module-tag security
import { connect as connectHttp2 } from "node:http2";
import type { Socket } from "node:net";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import type { MaskedSecret } from "../../src/gateway/masking.ts";
import { Scrubber, secretNeedles } from "../../src/gateway/scrub.ts";
import { shapeOf } from "../../src/gateway/surrogate.ts";
import { Inside, Outside, parse, policyOf, readUntil, rule, say } from "./kit.ts";

/** Another value that the surrogate does not tell from this one, from a place on. */
function otherThan(real: string, from: number): string {
  const { places } = shapeOf(real);
  return Array.from(real, (letter, at) => {
    const alphabet = places[at] as string;
    if (at < from || alphabet.length === 1) return letter;
    return alphabet[(alphabet.indexOf(letter) + 1) % alphabet.length];
  }).join("");
}

const outside = new Outside();
afterAll(() => outside[Symbol.asyncDispose]());

const real = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
const surrogate = otherThan(real, 4);
const secretFor = (host: string): MaskedSecret => ({
  name: "KEY",
  real,
  surrogate,
  hosts: [host],
  headers: ["authorization"],
  paths: null,
});

/** What a server says, piece by piece, as the test has it. */
interface Speaker {
  say(text: string): void;
  end(text: string): void;
}

/** One who waits to be told what the server should say next. */
class Stage {
  #ready: (speaker: Speaker) => void = () => {};
  speaker: Promise<Speaker> = this.#next();
  #next(): Promise<Speaker> {
    return new Promise((resolve) => {
      this.#ready = resolve;
    });
  }
  enter(speaker: Speaker): void {
    this.#ready(speaker);
    this.speaker = this.#next();
  }
}

/** All that the box has received so far. */
type Received = () => string;

interface Way {
  serve(host: string, stage: Stage): Promise<number>;
  ask(inside: Inside, host: string): Promise<Received>;
}

function collect(socket: Socket): Received {
  let seen = "";
  socket.on("data", (bytes: Buffer) => {
    seen += bytes.toString("latin1");
  });
  return () => seen;
}

const http1 = (headers: (length: number) => Record<string, string>): Way => ({
  serve: (host, stage) =>
    outside.https(host, (request, response) => {
      response.sendDate = false;
      response.writeHead(200, headers(Number(request.headers["x-length"]))).flushHeaders();
      stage.enter({ say: (text) => void response.write(text), end: (text) => void response.end(text) });
    }),
  async ask(inside, host) {
    const socket = await inside.secure(host);
    const received = collect(socket);
    socket.write(`GET /blob HTTP/1.1\r\nHost: ${host}\r\nX-Length: ${length}\r\n\r\n`);
    return received;
  },
});
/** Of every answer here. */
const length = 5 + real.length + 3;

const ways: Readonly<Record<string, Way>> = {
  "HTTP/1.1 in chunks": http1(() => ({})),
  "HTTP/1.1 with a length": http1((all) => ({ "content-length": `${all}` })),
  "server-sent events": http1(() => ({ "content-type": "text/event-stream", "cache-control": "no-store" })),
  "HTTP/2": {
    serve: (host, stage) =>
      outside.http2(host, (stream) => {
        stream.respond({ ":status": 200 });
        stage.enter({ say: (text) => void stream.write(text), end: (text) => void stream.end(text) });
      }),
    async ask(inside, host) {
      const socket = await inside.secure(host, { alpn: ["h2"] });
      const stream = connectHttp2(`https://${host}`, { createConnection: () => socket }).request({ ":path": "/blob" });
      let seen = "";
      stream.on("data", (bytes: Buffer) => {
        // Each is a frame of its own.
        seen += `[${bytes.length}]${bytes.toString("latin1")}`;
      });
      return () => seen;
    },
  },
  "a WebSocket": {
    serve: (host, stage) =>
      outside.tls(host, (socket) => {
        void readUntil(socket, "\r\n\r\n").then(() => {
          socket.resume();
          socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
          const frame = (text: string) =>
            Buffer.concat([Buffer.from([0x81, text.length]), Buffer.from(text, "latin1")]);
          stage.enter({ say: (text) => void socket.write(frame(text)), end: (text) => void socket.end(frame(text)) });
        });
      }),
    async ask(inside, host) {
      const socket = await inside.secure(host);
      const received = collect(socket);
      socket.write(
        `GET /chat HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
      );
      return received;
    },
  },
};

/** What the box sees of some words before their answer goes on, and of all of it. */
interface Seen {
  readonly before: string;
  readonly all: string;
}

describe.each(Object.entries(ways))("what comes by %s", (name, way) => {
  const host = `${name.replace(/\W+/g, "-").toLowerCase()}.example.com`;
  const stage = new Stage();
  const port = way.serve(host, stage);

  /** A stored file that ends a piece with these words. */
  const see = async (inside: Inside, words: string): Promise<Seen> => {
    const speaking = stage.speaker;
    const received = await way.ask(inside, host);
    const speaker = await speaking;
    speaker.say(`#####${words}`);
    await expect.poll(received, { interval: 2 }).toContain("#####");
    const before = received();
    speaker.end(`${"!".repeat(length - 5 - words.length)}`);
    await expect.poll(received, { interval: 2 }).toContain("!!");
    return { before, all: received() };
  };
  const open = async (): Promise<Inside> => {
    const secret = secretFor(host);
    const policy = policyOf([rule(host)], { secrets: [secret], reach: { [host]: `127.0.0.1:${await port}` } });
    const inside = new Inside(outside, policy, { secrets: [secret] });
    inside.believed = [outside.authority.certificatePem];
    return inside;
  };

  test("is the same for a right and a wrong guess at a part of a secret", async () => {
    await using inside = await open();
    for (const known of [4, 14, real.length - 2]) {
      const right = real.slice(0, known + 1);
      const wrong = otherThan(real, known).slice(0, known + 1);
      expect(wrong).not.toBe(right);
      const [one, other] = [await see(inside, right), await see(inside, wrong)];
      expect(one.all).toContain(right);
      expect({ before: one.before.replaceAll(right, wrong), all: one.all.replaceAll(right, wrong) }).toEqual(other);
    }
    // The control: the secret itself does not come through, and what is not one does.
    expect((await see(inside, real)).all).toContain(surrogate);
    expect((await see(inside, otherThan(real, real.length - 1))).all).toContain(otherThan(real, real.length - 1));
  });

  test("is whole at once where it ends like a secret begins", async () => {
    await using inside = await open();
    for (const words of ["the dog", "a weigh", surrogate]) expect((await see(inside, words)).before).toContain(words);
  });
});

test("an answer of our own does not tell whether a name that was asked for is a short secret", async () => {
  const host = "*.example.com";
  const short = { ...secretFor(host), real: "12345678", surrogate: "87654321" };
  const long = { ...secretFor(host), real: "1234567890123456789012", surrogate: "9876543210987654321098" };
  const policy = policyOf([rule(host)], { secrets: [short, long] });
  const unknown = () => Promise.resolve([]);
  await using inside = new Inside(outside, policy, { secrets: [short, long], resolve: unknown });
  const ask = async (name: string) => {
    const socket = await inside.secure(`${name}.example.com`);
    const answer = await say(socket, `GET / HTTP/1.1\r\nHost: ${name}.example.com\r\nConnection: close\r\n\r\n`);
    return JSON.parse(parse(answer).body).message.split("failed: ")[1];
  };
  expect(await ask("12345678")).toContain("12345678.");
  expect(await ask("12345679")).toContain("12345679.");
  // The control: what cannot be guessed is hidden.
  expect(await ask(long.real)).not.toContain(long.real);
});

describe("how much passes", () => {
  test.each([
    ["wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY12", 11],
    ["wJalrXUtnFEMIK7MDE", 7],
    ["0123456789abcdef0123456789abcdef", 11],
    ["ghp_16C7e42F292c6912E7710c838347Ae178B4a", 3],
    ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N", 11],
  ])("of %s, repeated letter by letter, is what everybody knows of it, or few letters: %i", (real, most) => {
    const scrubber = new Scrubber(secretNeedles([{ real, surrogate: otherThan(real, 0) }]));
    const passed = [...real].map((each) => scrubber.push(Buffer.from(each)).toString());
    expect(passed.indexOf("")).toBe(most);
    expect(passed.join("")).toBe(real.slice(0, most) + otherThan(real, 0).slice(most));
  });

  const letter = fc.constantFrom(..."abzXYZ0189");
  const secret = fc.tuple(
    fc.constantFrom("", "ghp_", "sk-proj-", "q-"),
    fc.array(letter, { minLength: 24, maxLength: 30 }),
  );
  const several = fc.array(secret, { minLength: 1, maxLength: 3 }).map((all) => {
    const reals = all.map(([kind, letters]) => kind + letters.join(""));
    // Also one that begins as the first, and one that holds it.
    return [...reals, `${(reals[0] as string).slice(0, 20)}ZZZZ0000aaaa1111`, `xx-${reals[0]}-yy`];
  });
  const sizes = fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 4 });
  const lengths = (reals: readonly string[], text: string, pieces: readonly number[]): readonly number[] => {
    const swaps = reals.map((each) => ({ real: each, surrogate: otherThan(each, 0) }));
    const scrubber = new Scrubber(secretNeedles(swaps));
    const passed: number[] = [];
    for (let at = 0, turn = 0; at < text.length; turn++) {
      const size = pieces[turn % pieces.length] as number;
      passed.push(scrubber.push(Buffer.from(text.slice(at, at + size))).length);
      at += size;
    }
    return [...passed, scrubber.flush().length];
  };

  test("does not depend on how much of a guess is right, however it is cut and whatever stands beside it", () => {
    const chosen = fc.tuple(several, sizes, fc.nat(), fc.nat(), fc.string({ maxLength: 12 }));
    fc.assert(
      fc.property(chosen, ([reals, pieces, which, where, beside]) => {
        const one = reals[which % reals.length] as string;
        const known = where % (one.length - 1);
        const right = one.slice(0, known + 1);
        const wrong = otherThan(one, known).slice(0, known + 1);
        fc.pre(!reals.some((each) => right.includes(each) || wrong.includes(each)));
        const file = (guess: string) => `${beside}${guess}|${guess}${beside}${guess}`;
        expect(lengths(reals, file(right), pieces)).toEqual(lengths(reals, file(wrong), pieces));
      }),
      { numRuns: 1000 },
    );
  });
});
