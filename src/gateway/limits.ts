/**
 * What one box may hold at once, and for how long somebody is waited for. All of it is held in the keeper's memory, which
 * no limit of the box's bounds: a request whose answer nobody reads takes up to 200 KiB of it, a tunnel 100 KiB.
 */
export interface Limits {
  readonly connections: number;
  /** Under way at once, over all connections. */
  readonly requests: number;
  /** At once on one connection that speaks HTTP/2. */
  readonly streams: number;
  /** Of the head of one request. */
  readonly headBytes: number;
  /** Where the client must speak first: until it does. */
  readonly silenceMs: number;
  /** Elsewhere: until the other side is taken for the one that speaks first. */
  readonly listenMs: number;
  /** From the first byte of a connection until it is clear what it speaks, and for a handshake. */
  readonly beginningMs: number;
  /** For the head of a request, and between two of them. */
  readonly headMs: number;
  /** After a refusal, for the rest of what was sent along. */
  readonly lingerMs: number;
  /** For one address outside. */
  readonly dialMs: number;
  /** A connection outside that nobody uses. */
  readonly idleMs: number;
}

export const usualLimits: Limits = {
  connections: 2304,
  requests: 512,
  streams: 128,
  headBytes: 65_536,
  silenceMs: 60_000,
  listenMs: 100,
  beginningMs: 10_000,
  headMs: 60_000,
  lingerMs: 5_000,
  dialMs: 10_000,
  idleMs: 30_000,
};
