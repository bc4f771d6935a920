import { SessionError } from "../errors.ts";

/** What standard input may send before it is granted more, and what each of the two others may. */
export const inputCredit = 262_144;
export const outputCredit = 1_048_576;
/** The most bytes of input, and of output, that one frame carries. */
export const mostInput = 65_536;
const mostOutput = 262_144;
/** The kernel's own limit for one word or variable, without its final NUL. */
export const mostWord = 131_071;
export const mostRecords = 65_536;
export const mostOrder = 8_388_608;

const headerSize = 5;
const mostText = 200;

/** Where a start failed. */
export type Stage = "order" | "directory" | "user" | "execution" | "means";
const stages: readonly Stage[] = ["order", "directory", "user", "execution", "means"];

/** Standard output and standard error, by the numbers they have everywhere. */
export type OutputStream = 1 | 2;

/** What the warden says. Output comes in pieces as it arrives, not in whole frames. */
export type WardenFrame =
  | { readonly kind: "started" }
  | { readonly kind: "failed"; readonly stage: Stage; readonly errno: number }
  | { readonly kind: "output"; readonly stream: OutputStream; readonly bytes: Buffer }
  | { readonly kind: "output-ended"; readonly stream: OutputStream }
  | { readonly kind: "input-closed" }
  | { readonly kind: "credit"; readonly bytes: number }
  | { readonly kind: "stopped"; readonly signal: number }
  | { readonly kind: "continued" }
  | { readonly kind: "exited"; readonly by: "status" | "signal"; readonly number: number }
  | { readonly kind: "refused"; readonly about: string };

export function encodeWord(word: string): Buffer {
  return encode("A", Buffer.from(word));
}

/** Null unsets the variable. */
export function encodeVariable(name: string, value: string | null): Buffer {
  return encode("V", Buffer.from(value === null ? name : `${name}=${value}`));
}

export function encodeDirectory(path: string): Buffer {
  return encode("C", Buffer.from(path));
}

export function encodeUser(uid: number, gid: number): Buffer {
  const payload = Buffer.alloc(8);
  payload.writeUInt32LE(uid, 0);
  payload.writeUInt32LE(gid, 4);
  return encode("U", payload);
}

export function encodeTerminal(rows: number, columns: number): Buffer {
  return encode("T", sizePayload(rows, columns));
}

export function encodeGo(): Buffer {
  return encode("G");
}

export function encodeQuit(): Buffer {
  return encode("Q");
}

/** Only the header: the bytes follow as they are, so that nobody has to copy them. */
export function encodeInputHeader(length: number): Buffer {
  return header("I", length, headerSize);
}

export function encodeInputEnd(): Buffer {
  return encode("E");
}

export function encodeSignal(number: number): Buffer {
  return encode("S", Buffer.of(number));
}

export function encodeResize(rows: number, columns: number): Buffer {
  return encode("W", sizePayload(rows, columns));
}

export function encodeCredit(stream: OutputStream, bytes: number): Buffer {
  const payload = Buffer.alloc(5);
  payload.writeUInt8(stream, 0);
  payload.writeUInt32LE(bytes, 1);
  return encode("K", payload);
}

/** Nobody reads it any more: whoever writes there is to feel it. */
export function encodeUnread(stream: OutputStream): Buffer {
  return encode("D", Buffer.from([stream]));
}

function sizePayload(rows: number, columns: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt16LE(rows, 0);
  payload.writeUInt16LE(columns, 2);
  return payload;
}

function encode(type: string, payload: Buffer = Buffer.alloc(0)): Buffer {
  const frame = header(type, payload.length, headerSize + payload.length);
  payload.copy(frame, headerSize);
  return frame;
}

function header(type: string, length: number, size: number): Buffer {
  const frame = Buffer.allocUnsafe(size);
  frame.write(type, 0, 1, "latin1");
  frame.writeUInt32LE(length, 1);
  return frame;
}

/** The least and the most that a frame of each type may carry. */
const limits: Readonly<Record<string, readonly [least: number, most: number]>> = {
  P: [0, 0],
  F: [5, 5],
  O: [1, mostOutput],
  R: [1, mostOutput],
  o: [0, 0],
  r: [0, 0],
  i: [0, 0],
  K: [5, 5],
  Z: [1, 1],
  Y: [0, 0],
  X: [2, 2],
  B: [0, mostText],
};

/**
 * Cuts what the warden sends into frames. The bytes come from a hostile inside: nothing is kept but the header and the
 * payload of small frames, and both only within the limits. Output is passed on as views of the chunks that were fed.
 * Whatever makes no sense throws PROTOCOL, and the connection is then good for nothing.
 */
export class FrameReader {
  readonly #emit: (frame: WardenFrame) => void;
  readonly #held = Buffer.alloc(headerSize + mostText);
  #filled = 0;
  #needed = headerSize;
  /** How many bytes of the current output frame are still to come, and of which stream. */
  #rest = 0;
  #stream: OutputStream = 1;

  constructor(emit: (frame: WardenFrame) => void) {
    this.#emit = emit;
  }

  read(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#rest > 0) {
        const bytes = chunk.subarray(at, at + this.#rest);
        at += bytes.length;
        this.#rest -= bytes.length;
        this.#emit({ kind: "output", stream: this.#stream, bytes });
      } else {
        const copied = chunk.copy(this.#held, this.#filled, at, at + this.#needed - this.#filled);
        at += copied;
        this.#filled += copied;
        if (this.#filled === this.#needed) this.#advance();
      }
    }
  }

  /** The header is complete, or the whole of a small frame. */
  #advance(): void {
    const type = String.fromCharCode(this.#held[0] as number);
    if (this.#needed === headerSize) {
      const length = checkLength(type, this.#held.readUInt32LE(1));
      if (type === "O" || type === "R") {
        this.#rest = length;
        this.#stream = type === "O" ? 1 : 2;
        this.#filled = 0;
        return;
      }
      this.#needed += length;
      if (length > 0) return;
    }
    const payload = this.#held.subarray(headerSize, this.#needed);
    this.#filled = 0;
    this.#needed = headerSize;
    this.#emit(decode(type, payload));
  }
}

function checkLength(type: string, length: number): number {
  const limit = limits[type];
  if (limit === undefined) throw senseless(`a frame of the unknown type ${type.charCodeAt(0)}`);
  const [least, most] = limit;
  if (length < least || length > most) throw senseless(`a frame ${type} of ${length} bytes`);
  return length;
}

function decode(type: string, payload: Buffer): WardenFrame {
  switch (type) {
    case "P":
      return { kind: "started" };
    case "F":
      return { kind: "failed", stage: stageOf(payload.readUInt8(0)), errno: payload.readUInt32LE(1) };
    case "o":
      return { kind: "output-ended", stream: 1 };
    case "r":
      return { kind: "output-ended", stream: 2 };
    case "i":
      return { kind: "input-closed" };
    case "K":
      if (payload[0] !== 0) throw senseless(`credit for the stream ${payload[0]}`);
      return { kind: "credit", bytes: payload.readUInt32LE(1) };
    case "Z":
      return { kind: "stopped", signal: checkSignal(payload.readUInt8(0)) };
    case "Y":
      return { kind: "continued" };
    case "X":
      return decodeExit(payload.readUInt8(0), payload.readUInt8(1));
    default:
      return { kind: "refused", about: payload.toString() };
  }
}

function stageOf(number: number): Stage {
  const stage = stages[number];
  if (stage === undefined) throw senseless(`a failure at the unknown stage ${number}`);
  return stage;
}

function decodeExit(kind: number, number: number): WardenFrame {
  if (kind > 1) throw senseless(`an end of the unknown kind ${kind}`);
  return kind === 0
    ? { kind: "exited", by: "status", number }
    : { kind: "exited", by: "signal", number: checkSignal(number) };
}

function checkSignal(number: number): number {
  if (number < 1 || number > 64) throw senseless(`the unknown signal ${number}`);
  return number;
}

function senseless(what: string): SessionError {
  return new SessionError("PROTOCOL", `The warden sent ${what}.`);
}
