import type { Duplex } from "node:stream";
import { SessionError } from "../errors.ts";
import { encodeResize, encodeSignal, FrameReader, type Stage, type WardenFrame } from "../wire/frames.ts";
import { Input } from "./input.ts";
import { Line } from "./line.ts";
import { clamp } from "./order.ts";
import { Output } from "./output.ts";
import { Pledge } from "./pledge.ts";
import type { Command, Size } from "./sandbox.ts";

export interface Spoken {
  /** All that the warden must know, sent at once. */
  readonly order: Buffer;
  readonly onTerminal: boolean;
  readonly explain: (stage: Stage, errno: number) => SessionError;
  readonly watch: Command["watch"];
}

/**
 * One connection to the warden, from the order to the end of the process. Whatever happens, it ends exactly once:
 * by the warden's last word, by `giveUp`, or by `fail` (which a lost or senseless connection is too).
 */
export class Conversation {
  readonly stdin: Input;
  readonly stdout: Output;
  /** A terminal has none. */
  readonly stderr: Output | undefined;
  readonly started: Promise<void>;
  /** The code that a shell would report. */
  readonly exited: Promise<number>;
  readonly #stream: Duplex;
  readonly #line: Line;
  readonly #reader = new FrameReader((frame) => this.#hear(frame));
  readonly #explain: Spoken["explain"];
  readonly #started = new Pledge<void>();
  readonly #exited = new Pledge<number>();
  readonly #stopListeners = new Set<() => void>();
  #phase: "ordered" | "running" | "over" = "ordered";
  #isStopped = false;

  constructor(stream: Duplex, { order, onTerminal, explain, watch }: Spoken) {
    this.#stream = stream;
    this.#explain = explain;
    this.#line = new Line(stream);
    this.stdin = new Input(this.#line, !onTerminal);
    this.stdout = new Output(this.#line, 1, watch && ((bytes) => watch("stdout", bytes)));
    this.stderr = onTerminal ? undefined : new Output(this.#line, 2, watch && ((bytes) => watch("stderr", bytes)));
    this.started = this.#started.promise;
    this.exited = this.#exited.promise;
    // An error can still come when everything is over; then it is nobody's business, but it must not be a crash.
    stream.on("error", this.#lose);
    if (stream.destroyed || stream.readableEnded) this.#lose();
    else this.#open(order);
  }

  get isRunning(): boolean {
    return this.#phase === "running";
  }

  signal(number: number): void {
    if (this.isRunning) this.#line.send(encodeSignal(number));
  }

  resize({ rows, columns }: Size): void {
    if (this.isRunning) this.#line.send(encodeResize(clamp(rows), clamp(columns)));
  }

  /** A stop that nobody has been told of yet is told at once: it may have come together with the start. */
  onStop(listener: () => void): void {
    this.#stopListeners.add(listener);
    if (this.#isStopped) queueMicrotask(listener);
  }

  /** Hangs up; the warden then ends what is left. What has come of the output can still be read. */
  giveUp(code: number): void {
    if (!this.#close()) return;
    this.#completeOutput();
    this.stdin.close();
    this.#exited.keep(code);
  }

  fail(reason: unknown): void {
    if (!this.#close()) return;
    const error = reason instanceof Error ? reason : new Error(String(reason));
    for (const output of [this.stdout, this.stderr]) output?.destroy(error);
    this.stdin.close(error);
    this.#started.break(reason);
    this.#exited.break(reason);
  }

  #open(order: Buffer): void {
    const stream = this.#stream;
    stream.on("data", this.#read);
    stream.on("drain", this.#catchUp);
    stream.on("end", this.#lose);
    stream.on("close", this.#lose);
    this.#line.send(order);
    // Whoever handed the stream over may have paused it.
    stream.resume();
  }

  readonly #lose = (cause?: unknown): void => {
    this.fail(new SessionError("BOX_LOST", "The sandbox ended before the command did.", { cause }));
  };

  readonly #read = (chunk: Buffer): void => {
    try {
      this.#reader.read(chunk);
    } catch (error) {
      this.fail(error);
      // A listener of the caller's that throws has to be heard of as everywhere else.
      if (!(error instanceof SessionError)) throw error;
    }
  };

  /** The other end has caught up with what it was sent. */
  readonly #catchUp = (): void => {
    this.stdin.advance();
    this.stdout.grant();
    this.stderr?.grant();
  };

  #hear(frame: WardenFrame): void {
    if (this.#phase === "ordered") this.#hearAnswer(frame);
    else if (this.#phase === "running") this.#hearMore(frame);
  }

  #hearAnswer(frame: WardenFrame): void {
    switch (frame.kind) {
      case "started":
        this.#phase = "running";
        this.#started.keep();
        break;
      case "failed":
        this.fail(this.#explain(frame.stage, frame.errno));
        break;
      case "refused":
        throw misunderstood(frame.about);
      default:
        throw senseless("something else than an answer to the order");
    }
  }

  #hearMore(frame: WardenFrame): void {
    switch (frame.kind) {
      case "output":
        this.#outputOf(frame.stream).receive(frame.bytes);
        break;
      case "output-ended":
        this.#outputOf(frame.stream).complete();
        break;
      case "input-closed":
        this.stdin.refuse();
        break;
      case "credit":
        this.stdin.grant(frame.bytes);
        break;
      case "stopped":
        this.#isStopped = true;
        for (const listener of this.#stopListeners) listener();
        break;
      case "continued":
        this.#isStopped = false;
        break;
      case "exited":
        this.giveUp(frame.by === "signal" ? 128 + frame.number : frame.number);
        break;
      case "refused":
        throw misunderstood(frame.about);
      default:
        throw senseless("two answers to one order");
    }
  }

  #outputOf(stream: 1 | 2): Output {
    const output = stream === 1 ? this.stdout : this.stderr;
    if (output === undefined) throw senseless("errors apart from the output of a terminal");
    return output;
  }

  #completeOutput(): void {
    for (const output of [this.stdout, this.stderr]) if (output?.isComplete === false) output.complete();
  }

  /** Whether this was the first end. */
  #close(): boolean {
    if (this.#phase === "over") return false;
    this.#phase = "over";
    this.#stopListeners.clear();
    this.#stream.off("data", this.#read).off("drain", this.#catchUp).off("end", this.#lose).off("close", this.#lose);
    this.#stream.destroy();
    return true;
  }
}

function senseless(what: string): SessionError {
  return new SessionError("PROTOCOL", `The warden sent ${what}.`);
}

function misunderstood(about: string): SessionError {
  return new SessionError("PROTOCOL", `The warden did not understand what it was sent: ${about}`);
}
