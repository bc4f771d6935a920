import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { environment } from "./programs.ts";

/** A keeper for tests: it speaks the warden's protocol as docs/protocols.md has it, and shares nothing with src/. */
export const firstInput = 262_144;
export const firstOutput = 1_048_576;
const mostInput = 65_536;
const mostOutput = 262_144;

export type Payload = string | Buffer | readonly number[];

export function frame(type: string, payload: Payload = "", length = Buffer.from(payload as string).length): Buffer {
  const header = Buffer.alloc(5, type, "latin1");
  header.writeUInt32LE(length, 1);
  return Buffer.concat([header, Buffer.from(payload as string)]);
}

const number16 = (value: number): number[] => [value & 255, value >> 8];
export const number32 = (value: number): number[] => [...number16(value & 0xffff), ...number16(value >>> 16)];

export interface Order {
  readonly env?: readonly string[];
  readonly cwd?: string;
  readonly user?: readonly [uid: number, gid: number];
  readonly terminal?: readonly [rows: number, columns: number];
}

export function order(words: readonly string[], { env = [], cwd, user, terminal }: Order = {}): Buffer {
  return Buffer.concat([
    ...words.map((word) => frame("A", word)),
    ...env.map((variable) => frame("V", variable)),
    ...(cwd === undefined ? [] : [frame("C", cwd)]),
    ...(user === undefined ? [] : [frame("U", user.flatMap(number32))]),
    ...(terminal === undefined ? [] : [frame("T", terminal.flatMap(number16))]),
    frame("G"),
  ]);
}

export const words = (list: readonly string[]) => Buffer.from(list.map((word) => `${word}\0`).join(""));
export const sized = (bytes: Buffer) => Buffer.concat([Buffer.from(number32(bytes.length)), bytes]);

/** What a warden in a container is told. */
export interface Birth {
  readonly filter?: Buffer;
  /** Paths, each with the identity of what must be mounted there, and with "ro" or "rw". */
  readonly mounts?: readonly string[];
  /** What the box may have besides, and what it must not share. Where there is none, the warden does not look. */
  readonly bounds?: readonly string[];
  readonly env?: readonly string[];
}

export function birthOf(
  token: Buffer,
  { filter = Buffer.alloc(0), mounts = [], bounds = [], env = [] }: Birth = {},
): Buffer {
  return Buffer.concat([token, sized(filter), sized(words(mounts)), sized(words(bounds)), words(env)]);
}

/** How long a payload of the warden's may be. */
const lengths: Readonly<Record<string, readonly [least: number, most: number]>> = {
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
  B: [1, 200],
};

export interface Outcome {
  /** The types of all frames but those of data and credit, in order. */
  readonly told: string;
  readonly end?: readonly [kind: number, number: number];
  readonly failure?: readonly [stage: number, errno: number];
  readonly complaint?: string;
  readonly output: Buffer;
  readonly errors: Buffer;
}

/** One connection of the warden's, from the hello on. What the warden may not say is an error in `wrong`. */
export class Conversation {
  readonly wrong: string[] = [];
  readonly chunks = { O: [] as Buffer[], R: [] as Buffer[] };
  readonly received = { O: 0, R: 0 };
  told = "";
  inputCredit = firstInput;
  inputSent = 0;
  /** Whether credit is given for everything that comes. */
  grants = true;
  isClosed = false;
  private readonly last = new Map<string, Buffer>();
  private readonly credit = { O: firstOutput, R: firstOutput };
  private rest: Buffer = Buffer.alloc(0);
  private wake: () => void = () => {};
  private change = new Promise<void>((resolve) => {
    this.wake = resolve;
  });

  readonly socket: Socket;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", (bytes: Buffer) => this.read(bytes));
    socket.on("error", (error) => this.wrong.push(String(error)));
    socket.on("close", () => {
      this.isClosed = true;
      this.wake();
    });
  }

  send(type: string, payload: Payload = ""): void {
    this.socket.write(frame(type, payload));
  }

  grant(stream: 1 | 2, bytes: number): void {
    this.credit[stream === 1 ? "O" : "R"] += bytes;
    this.send("K", [stream, ...number32(bytes)]);
  }

  signal(number: number): void {
    this.send("S", [number]);
  }

  /** Sends as credit allows. */
  async input(bytes: Buffer | string): Promise<void> {
    let rest = Buffer.from(bytes as string);
    while (rest.length > 0) {
      await this.until(() => this.inputCredit > 0);
      const length = Math.min(rest.length, this.inputCredit, mostInput);
      this.inputCredit -= length;
      this.inputSent += length;
      this.send("I", rest.subarray(0, length));
      rest = rest.subarray(length);
    }
  }

  /** Waits until something holds; fails if the connection ends before. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) {
      if (this.isClosed) throw new Error(`the connection has ended after ${this.told}, ${this.output}, ${this.wrong}`);
      await this.change;
    }
  }

  async untilTold(type: string): Promise<Buffer> {
    await this.until(() => this.last.has(type));
    const payload = this.last.get(type) ?? Buffer.alloc(0);
    this.last.delete(type);
    return payload;
  }

  async untilOutput(expected: string | RegExp): Promise<void> {
    await this.until(() =>
      typeof expected === "string" ? this.output.includes(expected) : expected.test(this.output),
    );
  }

  get output(): string {
    return Buffer.concat(this.chunks.O).toString();
  }

  async outcome(): Promise<Outcome> {
    await this.until(() => this.isClosed);
    if (this.rest.length > 0) this.wrong.push("half a frame");
    if (this.wrong.length > 0) throw new Error(this.wrong.join("; "));
    const [x, f, b] = ["X", "F", "B"].map((type) => this.last.get(type));
    return {
      told: this.told,
      ...(x && { end: [x[0] ?? -1, x[1] ?? -1] as const }),
      ...(f && { failure: [f[0] ?? -1, f.readInt32LE(1)] as const }),
      ...(b && { complaint: b.toString() }),
      output: Buffer.concat(this.chunks.O),
      errors: Buffer.concat(this.chunks.R),
    };
  }

  private read(bytes: Buffer): void {
    this.rest = this.rest.length === 0 ? bytes : Buffer.concat([this.rest, bytes]);
    while (this.rest.length >= 5) {
      const length = this.rest.readUInt32LE(1);
      if (this.rest.length < 5 + length) break;
      const type = String.fromCharCode(this.rest[0] ?? 0);
      const payload = this.rest.subarray(5, 5 + length);
      this.rest = this.rest.subarray(5 + length);
      this.take(type, payload);
    }
    this.wake();
    this.change = new Promise((resolve) => {
      this.wake = resolve;
    });
  }

  private take(type: string, payload: Buffer): void {
    const [least, most] = lengths[type] ?? [1, 0];
    if (payload.length < least || payload.length > most) this.wrong.push(`${payload.length} bytes of ${type}`);
    if (/[XBF]/.test(this.told)) this.wrong.push(`${type} after the last frame`);
    if (type === "O" || type === "R") this.takeData(type, payload);
    else if (type === "K") this.takeCredit(payload);
    else {
      this.told += type;
      this.last.set(type, payload);
    }
  }

  private takeCredit(payload: Buffer): void {
    if (payload[0] !== 0) this.wrong.push("credit for another stream");
    this.inputCredit += payload.readUInt32LE(1);
  }

  private takeData(type: "O" | "R", payload: Buffer): void {
    this.credit[type] -= payload.length;
    if (this.credit[type] < 0) this.wrong.push(`${type} beyond its credit`);
    if (this.told.includes(type.toLowerCase())) this.wrong.push(`${type} after its end`);
    if (!this.told.startsWith("P")) this.wrong.push(`${type} before the start`);
    this.chunks[type].push(payload);
    this.received[type] += payload.length;
    if (this.grants && this.socket.writable) this.grant(type === "O" ? 1 : 2, payload.length);
  }
}

/** Listens at a path and takes what a warden with the right token has parked. */
export class Keeper {
  readonly token = randomBytes(32);
  /** Connections so far, and how many of them did not begin with the hello. */
  accepted = 0;
  strangers = 0;
  readonly parked: Socket[] = [];
  private readonly waiting: ((socket: Socket) => void)[] = [];
  private readonly open = new Set<Socket>();
  private server: Server | undefined;

  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  async listen(): Promise<void> {
    this.server = createServer({ allowHalfOpen: true }, (socket) => this.accept(socket));
    this.server.listen(this.path);
    await once(this.server, "listening");
  }

  /** Ends all connections too. */
  async close(): Promise<void> {
    this.server?.close();
    for (const socket of this.open) socket.destroy();
    this.parked.length = 0;
    await new Promise(setImmediate);
  }

  async connection(): Promise<Socket> {
    return this.parked.shift() ?? (await new Promise((resolve) => this.waiting.push(resolve)));
  }

  async start(words: readonly string[], options: Order = {}): Promise<Conversation> {
    const conversation = new Conversation(await this.connection());
    conversation.socket.write(order(words, options));
    return conversation;
  }

  /** Starts, gives the input, ends it and waits for the end. */
  async run(words: readonly string[], options: Order & { readonly input?: string | Buffer } = {}): Promise<Outcome> {
    const conversation = await this.start(words, options);
    if (options.input !== undefined) await conversation.input(options.input);
    conversation.send("E");
    return await conversation.outcome();
  }

  /** Sends bytes instead of an order, and waits for the end. */
  async converse(...bytes: readonly Buffer[]): Promise<Outcome> {
    const conversation = new Conversation(await this.connection());
    conversation.socket.write(Buffer.concat(bytes));
    return await conversation.outcome();
  }

  private accept(socket: Socket): void {
    this.accepted++;
    this.open.add(socket);
    let hello = Buffer.alloc(0);
    const gone = () => {
      this.open.delete(socket);
      if (this.parked.includes(socket)) this.parked.splice(this.parked.indexOf(socket), 1);
    };
    socket.on("close", gone).on("end", () => socket.end());
    socket.on("error", () => {});
    const read = (bytes: Buffer) => {
      hello = Buffer.concat([hello, bytes]);
      if (hello.length < 40) return;
      socket.off("data", read);
      if (hello.equals(Buffer.concat([Buffer.from("podbot\x001"), this.token]))) this.park(socket);
      else {
        this.strangers++;
        socket.destroy();
      }
    };
    socket.on("data", read);
  }

  private park(socket: Socket): void {
    const next = this.waiting.shift();
    if (next === undefined) this.parked.push(socket);
    else next(socket);
  }
}

/** A warden that was started, and what it complains of. A sanitizer's finding would be a complaint. */
export class Warden {
  readonly pid: number;
  private readonly complaints: Promise<string>;
  private readonly exit: Promise<unknown[]>;

  constructor(
    command: string,
    words: readonly string[],
    token: Buffer,
    env: Readonly<Record<string, string>> = environment,
  ) {
    const child: ChildProcess = spawn(command, words, { env, stdio: ["pipe", "ignore", "pipe"], cwd: "/" });
    child.stdin?.on("error", () => {}).end(token);
    this.pid = child.pid ?? -1;
    this.complaints = text(child.stderr as NodeJS.ReadableStream);
    this.exit = once(child, "exit");
  }

  async ended(): Promise<{ status: number | null; signal: string | null; complaints: string }> {
    const [status, signal] = (await this.exit) as [number | null, string | null];
    return { status, signal, complaints: await this.complaints };
  }

  async end(): Promise<{ status: number | null; signal: string | null; complaints: string }> {
    process.kill(this.pid, "SIGTERM");
    return await this.ended();
  }
}

export const socketPathIn = (scratch: string): string => join(mkdtempSync(join(scratch, "in-")), "warden.sock");

/** A warden with a keeper that listens already. */
export async function startWardenIn(
  scratch: string,
  program: string,
  env = environment,
): Promise<{ keeper: Keeper; warden: Warden }> {
  const keeper = new Keeper(socketPathIn(scratch));
  await keeper.listen();
  return { keeper, warden: new Warden(program, [keeper.path], keeper.token, env) };
}

/** The numbers of a process's children, zombies among them. */
export function childrenOf(parent: number): number[] {
  const stats = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => {
      try {
        return readFileSync(`/proc/${name}/stat`, "latin1");
      } catch {
        return "";
      }
    });
  return stats.flatMap((stat) => {
    const match = /^(\d+) \(.*\) \w (\d+)/s.exec(stat);
    return match !== null && Number(match[2]) === parent ? [Number(match[1])] : [];
  });
}

export function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
}
