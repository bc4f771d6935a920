import type { Readable, Writable } from "node:stream";
import type { HeaderList } from "./headers.ts";
import type { Tally } from "./pump.ts";

/** A request that has come in at a door, whichever HTTP it speaks. */
export interface Inbound {
  readonly version: 1 | 2;
  readonly method: string;
  /** As it was written: a path, or an address with its host. */
  readonly written: string;
  /** `:authority`; null in HTTP/1.1, where it is a header. */
  readonly authority: string | null;
  readonly headers: HeaderList;
  readonly body: Readable;
  /** Whether a body may follow, and whether its end is known from its length. */
  readonly framing: "none" | "length" | "chunked";
  /** The body is wanted: whoever waits to be told so is. */
  proceed(): void;
  /** Begins the answer; what is written to the stream is its body. */
  respond(status: number, headers: HeaderList): Writable;
  /** Ends the answer, with what follows its body. */
  finish(trailers: HeaderList): void;
  /** What is left of the body is not wanted: it is not read for ever. */
  forsake(): void;
  /** Nothing more is heard on the connection once this is answered. */
  hangUp(): void;
  /** Breaks it off. */
  abort(): void;
  /** Calls back when the other end has gone before all was answered. */
  onGone(listener: () => void): void;
}

/** What is asked outside on its behalf. */
export interface Outbound {
  readonly method: string;
  readonly path: string;
  readonly host: string;
  /** As the box has written it, port and all. */
  readonly authority: string;
  readonly port: number;
  readonly headers: HeaderList;
  readonly body: Readable;
  readonly framing: Inbound["framing"];
  /** Whether a rule or a secret has requests there looked at: then nothing may come to be one that was not. */
  readonly isGuarded: boolean;
}

/** What was answered outside. */
export interface Reply {
  readonly status: number;
  readonly headers: HeaderList;
  readonly body: Readable;
  trailers(): HeaderList;
}

/** A request on its way out, which can be broken off. */
export interface Sending {
  readonly reply: Promise<Reply>;
  /** Of the body. */
  readonly sent: Tally;
  /** When no more of it will be sent, for whatever reason. Never fails. */
  readonly finished: Promise<void>;
  abort(): void;
}

const repeatable = ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"];

/** Whether it does no harm to ask twice, where the first time may not have been heard. What was sent along is gone. */
export function isRepeatable({ method, framing }: Outbound): boolean {
  return framing === "none" && repeatable.includes(method);
}
