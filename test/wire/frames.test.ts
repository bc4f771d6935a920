import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SessionError } from "../../src/errors.ts";
import {
  encodeCredit,
  encodeDirectory,
  encodeGo,
  encodeInputEnd,
  encodeInputHeader,
  encodeQuit,
  encodeResize,
  encodeSignal,
  encodeTerminal,
  encodeUnread,
  encodeUser,
  encodeVariable,
  encodeWord,
  FrameReader,
  type WardenFrame,
} from "../../src/wire/frames.ts";
import { failure } from "../failure.ts";

function frame(type: string, payload: Uint8Array | string = ""): Buffer {
  const bytes = Buffer.from(payload);
  const header = Buffer.alloc(5);
  header.write(type, "latin1");
  header.writeUInt32LE(bytes.length, 1);
  return Buffer.concat([header, bytes]);
}

/** Every frame that the chunks hold, the pieces of one stream's output joined. */
function readAll(chunks: readonly Buffer[]): readonly WardenFrame[] {
  const frames: WardenFrame[] = [];
  const reader = new FrameReader((next) => {
    const last = frames.at(-1);
    if (last?.kind === "output" && next.kind === "output" && last.stream === next.stream) {
      frames[frames.length - 1] = { ...last, bytes: Buffer.concat([last.bytes, next.bytes]) };
    } else {
      frames.push(next);
    }
  });
  for (const chunk of chunks) reader.read(chunk);
  return frames;
}

/** The same bytes, cut at these places. */
function cut(bytes: Buffer, places: readonly number[]): readonly Buffer[] {
  const at = [...new Set([0, ...places.map((place) => place % (bytes.length + 1)), bytes.length])];
  at.sort((a, b) => a - b);
  return at.slice(1).map((end, index) => bytes.subarray(at[index], end));
}

const number = (bytes: number) => fc.integer({ min: 0, max: 256 ** bytes - 1 });
const littleEndian = (value: number) => [value & 255, (value >>> 8) & 255, (value >>> 16) & 255, value >>> 24];
const signal = fc.integer({ min: 1, max: 64 });
const anyFrame: fc.Arbitrary<Buffer> = fc.oneof(
  fc.constantFrom("P", "o", "r", "i", "Y").map((type) => frame(type)),
  fc
    .tuple(fc.integer({ min: 0, max: 4 }), number(4))
    .map(([stage, errno]) => frame("F", Buffer.of(stage, ...littleEndian(errno)))),
  fc
    .tuple(fc.constantFrom("O", "R"), fc.uint8Array({ minLength: 1, maxLength: 3000 }))
    .map(([type, bytes]) => frame(type, bytes)),
  number(4).map((bytes) => frame("K", Buffer.of(0, ...littleEndian(bytes)))),
  signal.map((value) => frame("Z", Buffer.of(value))),
  number(1).map((value) => frame("X", Buffer.of(0, value))),
  signal.map((value) => frame("X", Buffer.of(1, value))),
  fc.uint8Array({ maxLength: 200 }).map((bytes) => frame("B", bytes)),
);

describe("what the warden says", () => {
  test.each<[string, Buffer, WardenFrame]>([
    ["the command has been executed", frame("P"), { kind: "started" }],
    ["it could not be", frame("F", Buffer.of(3, 2, 0, 0, 0)), { kind: "failed", stage: "execution", errno: 2 }],
    ["output", frame("O", "out"), { kind: "output", stream: 1, bytes: Buffer.from("out") }],
    ["errors", frame("R", "err"), { kind: "output", stream: 2, bytes: Buffer.from("err") }],
    ["the end of output", frame("o"), { kind: "output-ended", stream: 1 }],
    ["the end of errors", frame("r"), { kind: "output-ended", stream: 2 }],
    ["nobody reads input", frame("i"), { kind: "input-closed" }],
    ["credit", frame("K", Buffer.of(0, 0, 0, 1, 0)), { kind: "credit", bytes: 65_536 }],
    ["a stop", frame("Z", Buffer.of(20)), { kind: "stopped", signal: 20 }],
    ["it goes on", frame("Y"), { kind: "continued" }],
    ["an exit status", frame("X", Buffer.of(0, 255)), { kind: "exited", by: "status", number: 255 }],
    ["a signal", frame("X", Buffer.of(1, 9)), { kind: "exited", by: "signal", number: 9 }],
    ["a complaint", frame("B", "no such frame"), { kind: "refused", about: "no such frame" }],
    ["an empty complaint", frame("B"), { kind: "refused", about: "" }],
  ])("%s", (_name, bytes, expected) => {
    expect(readAll([bytes])).toEqual([expected]);
  });

  test("is the same, however it is cut into chunks", () => {
    fc.assert(
      fc.property(fc.array(anyFrame, { maxLength: 30 }), fc.array(fc.nat(), { maxLength: 40 }), (frames, places) => {
        const bytes = Buffer.concat(frames);
        expect(readAll(cut(bytes, places))).toEqual(readAll([bytes]));
      }),
    );
  });

  test("is the same, one byte at a time", () => {
    const bytes = Buffer.concat([frame("P"), frame("O", "abc"), frame("K", Buffer.of(0, 1, 2, 3, 4)), frame("B", "x")]);
    expect(readAll([...bytes].map((byte) => Buffer.of(byte)))).toEqual(readAll([bytes]));
  });

  test("comes as views of the chunks: output is not copied", () => {
    const chunk = frame("O", Buffer.alloc(65_536, 7));
    const pieces: Buffer[] = [];
    const reader = new FrameReader((next) => next.kind === "output" && pieces.push(next.bytes));
    reader.read(chunk.subarray(0, 1000));
    reader.read(chunk.subarray(1000));
    expect(pieces.map((piece) => piece.length)).toEqual([995, 64_541]);
    expect(pieces.every((piece) => piece.buffer === chunk.buffer)).toBe(true);
  });
});

describe("what makes no sense", () => {
  test.each<[string, Buffer]>([
    ["an unknown type", frame("A", "word")],
    ["a type that is not even a letter", frame("\0")],
    ["output of no bytes", frame("O")],
    ["output of more than the most", frame("O", Buffer.alloc(262_145))],
    ["errors of 4 GiB", Buffer.from("R\xff\xff\xff\xff", "latin1")],
    ["a start with a payload", frame("P", "x")],
    ["a short failure", frame("F", Buffer.of(1))],
    ["a failure at an unknown stage", frame("F", Buffer.of(5, 0, 0, 0, 0))],
    ["credit for output", frame("K", Buffer.of(1, 0, 0, 0, 0))],
    ["a stop by signal 0", frame("Z", Buffer.of(0))],
    ["a stop by signal 65", frame("Z", Buffer.of(65))],
    ["an end of an unknown kind", frame("X", Buffer.of(2, 0))],
    ["an end by signal 0", frame("X", Buffer.of(1, 0))],
    ["a long complaint", frame("B", Buffer.alloc(201))],
  ])("%s", (_name, bytes) => {
    expect(failure(SessionError, () => readAll([bytes]))).toMatchObject({
      code: "PROTOCOL",
      message: expect.stringMatching(/^.{1,80}$/),
    });
  });

  test("a length is refused with its header, before any of the payload has come", () => {
    const header = Buffer.from("B\xff\xff\xff\x7f", "latin1");
    expect(failure(SessionError, () => readAll([header])).code).toBe("PROTOCOL");
  });

  test("garbage does nothing but throw PROTOCOL", () => {
    const garbage = fc.oneof(
      fc.uint8Array({ maxLength: 600 }),
      // Garbage that gets past the first header.
      fc
        .tuple(fc.array(anyFrame, { maxLength: 3 }), fc.uint8Array({ maxLength: 600 }))
        .map(([frames, rest]) => Buffer.concat([...frames, rest])),
    );
    fc.assert(
      fc.property(garbage, (bytes) => {
        try {
          readAll([Buffer.from(bytes)]);
        } catch (error) {
          expect(error).toMatchObject({ name: "SessionError", code: "PROTOCOL" });
        }
      }),
      { numRuns: 1000 },
    );
  });
});

describe("what the keeper says", () => {
  test.each<[string, Buffer, Buffer]>([
    ["a word", encodeWord("écho"), frame("A", "écho")],
    ["an empty word", encodeWord(""), frame("A")],
    ["a variable", encodeVariable("A", "b=c"), frame("V", "A=b=c")],
    ["an empty variable", encodeVariable("A", ""), frame("V", "A=")],
    ["no variable", encodeVariable("A", null), frame("V", "A")],
    ["a directory", encodeDirectory("/tmp"), frame("C", "/tmp")],
    ["a user", encodeUser(1000, 0xffff_fffe), frame("U", Buffer.of(232, 3, 0, 0, 254, 255, 255, 255))],
    ["a terminal", encodeTerminal(24, 300), frame("T", Buffer.of(24, 0, 44, 1))],
    ["go", encodeGo(), frame("G")],
    ["quit", encodeQuit(), frame("Q")],
    ["input", Buffer.concat([encodeInputHeader(3), Buffer.from("abc")]), frame("I", "abc")],
    ["the end of input", encodeInputEnd(), frame("E")],
    ["a signal", encodeSignal(15), frame("S", Buffer.of(15))],
    ["a new size", encodeResize(1, 65_535), frame("W", Buffer.of(1, 0, 255, 255))],
    ["nobody who reads", encodeUnread(2), frame("D", Buffer.of(2))],
    ["credit", encodeCredit(2, 65_536), frame("K", Buffer.of(2, 0, 0, 1, 0))],
  ])("%s", (_name, encoded, expected) => {
    expect(encoded).toEqual(expected);
  });
});
