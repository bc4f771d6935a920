/**
 * Every bound of the gateway. A box chooses what it sends, and the keeper holds it in its own memory, which no limit of
 * the box bounds: what is not bounded here is the box's to fill. Together they keep a keeper within 256 MiB of its idle
 * size, which `test/gateway/floods.test.ts` measures.
 */
export interface Limits {
  /** Connections from the box at once. The parser of one that stays in the middle of a head holds up to twice `headBytes`. */
  readonly connections: number;
  /** Connections among them in which the gateway speaks TLS itself. OpenSSL and Node hold some 50 KiB for each. */
  readonly opened: number;
  /** Requests under way at once, over all connections. One whose answer is not read holds up to 200 KiB. */
  readonly requests: number;
  /** Requests on one connection that speaks HTTP/1.1 and have not been answered: Node holds some 5 KiB for each in the queue. */
  readonly pipelined: number;
  /** Requests at once on one connection that speaks HTTP/2. */
  readonly streams: number;
  /** Streams on all connections together, answered or not: a client that never reads its answer keeps one open. */
  readonly allStreams: number;
  /** Connections that speak HTTP/2: nghttp2 and Node hold 100 KiB for each, besides its streams. */
  readonly http2Connections: number;
  /** Names and values of one head, with what separates them. Servers take 8 to 32 KiB. */
  readonly headBytes: number;
  /** Headers of one head: a name and a value cost V8 some 100 bytes, however short they are. Browsers send 30. */
  readonly headFields: number;
  /** Heads of all requests under way. Each is kept two or three times over on its way out. */
  readonly headsBytes: number;
  /** First bytes of all connections of which it is not clear yet what they speak. */
  readonly openingsBytes: number;
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
  connections: 2048,
  opened: 1024,
  requests: 512,
  pipelined: 32,
  streams: 128,
  allStreams: 640,
  http2Connections: 128,
  headBytes: 32_768,
  headFields: 256,
  headsBytes: 8 << 20,
  openingsBytes: 16 << 20,
  silenceMs: 60_000,
  listenMs: 100,
  beginningMs: 10_000,
  headMs: 60_000,
  lingerMs: 5_000,
  dialMs: 10_000,
  idleMs: 30_000,
};

/** Bounds that do not depend on how a gateway is opened. */
export const bounds = {
  /** One TLS client's hello, all its records together. The longest of today's take a tenth; `openingsBytes` has the sum. */
  helloBytes: 65_536,
  /** Some clients cut their hello, though none so fine. Each new record has all before it looked at again. */
  helloRecords: 64,
  /** Empty lines before a request. RFC 9112 has servers ignore one; what follows these is lost. */
  emptyBytes: 1024,
  /** The line by which SSH begins; RFC 4253 sets it. */
  sshLineBytes: 255,
  /** What one direction of a connection may hold for a slow reader. With less, both sides would wait all the time. */
  heldBytes: 1 << 17,
  /** The same of a read in a crowd, and from how many connections on there is one: together they hold no more. */
  heldInCrowdBytes: 1 << 14,
  crowd: 64,
  /**
   * What Node may hold of one HTTP/2 connection, in MB, before it refuses streams. All streams of a client that downloads
   * with each of them, slowly, take 8.
   */
  http2SessionMegabytes: 10,
  /** What all streams of one HTTP/2 connection outside may have on their way: one window of it a round trip. */
  http2WindowBytes: 1 << 20,
  /** Answers with a status of 1xx before the answer itself. Servers send one or two. */
  informational: 16,
  /** Connections outside that wait for the next request, over all places. Each holds TLS buffers for `idleMs`. */
  idleOutside: 64,
  /** Places of which it is remembered whether they speak HTTP/2. A box may be allowed any number of names. */
  placesOutside: 1024,
  /** The addresses of one name that are tried. A name may have any number. */
  addresses: 8,
  /** Names that are looked up at once: each takes a thread of this process that cannot be called off. */
  lookupsAtOnce: 2,
  /** Names that wait to be looked up, and names remembered as unknown. */
  lookupsWaiting: 1024,
  lookupsUnknown: 1024,
  /** One question for a name, with all the options that clients add. */
  dnsQueryBytes: 4096,
  /** Connections with questions for names, at once. Each is soon over. */
  dnsConnections: 256,
  /** Addresses for names of which only one that a rule spells out may have one more, and one that a pattern covers. */
  namesKeptForRules: 1024,
  namesKeptForPatterns: 8192,
  /** Hosts whose TLS context is remembered, and whose certificate. Another costs a signature. */
  contexts: 256,
  certificates: 512,
} as const;
