import { readFileSync } from "node:fs";
import type { Socket } from "node:net";
import { createSecureContext, rootCertificates, type SecureContext } from "node:tls";
import type { NetworkPolicy } from "../policy/network.ts";
import { canonicalHost, namedBy } from "../policy/network.ts";
import type { Upstream } from "../upstream/upstream.ts";
import type { AuditAhead, AuditEntry } from "./audit.ts";
import type { Authority } from "./authority.ts";
import { type Connections, openConnections } from "./connection.ts";
import type { Context } from "./context.ts";
import { DeniedAddresses } from "./denied-addresses.ts";
import { addressesAmong, ownNeighbourhood, resolveOutside } from "./dial.ts";
import { answerQuery, DnsStream } from "./dns.ts";
import { openLedger } from "./ledger.ts";
import { bounds, type Limits, usualLimits } from "./limits.ts";
import { Lookups } from "./lookups.ts";
import type { MaskedSecret } from "./masking.ts";
import { Names } from "./names.ts";
import { heldBytesAmong } from "./pump.ts";

export interface GatewayOptions {
  readonly policy: NetworkPolicy;
  /** Looked at anew each time: one may be replaced while the gateway stands, and then the list is another. */
  readonly secrets: readonly MaskedSecret[];
  readonly authority: Authority;
  readonly audit: (entry: AuditEntry) => void;
  /** Writes down what is about to be let out; false where that cannot be done, and then it is not. Default: it can. */
  readonly ahead?: (line: AuditAhead) => boolean;
  /** Takes secrets out of what is written down. Default: there are none. */
  readonly redact?: (text: string) => string;
  /** When it is first written down how far something has come that goes on. */
  readonly renewMs?: number;
  /** Files of certificates that are believed besides those that Node knows. */
  readonly trustFiles: readonly string[];
  /** Default: as this machine resolves names. */
  readonly resolve?: (host: string) => Promise<readonly string[]>;
  /** The networks that this machine is in, as `address/bits`. Default: those of its interfaces. */
  readonly neighbourhood?: () => readonly string[];
  /** The proxy by which the world is reached. Default: none. */
  readonly upstream?: Upstream | null;
  /** Whether the audit cannot be written: then nothing is let through. Default: it can. */
  readonly isBlind?: () => boolean;
  /** Where they are not the usual ones. */
  readonly limits?: Partial<Limits>;
}

/** Answers what a box asks for at its doors, by one policy. */
export interface Gateway extends Disposable {
  /** One connection that has come in at the door of that port. */
  take(socket: Socket, port: number): void;
  /** One question for a name; null where it is none, and is not answered. */
  answer(packet: Uint8Array): Uint8Array | null;
  /** From now on, another policy. What is under way goes on; what is asked next is dialled anew. */
  replacePolicy(policy: NetworkPolicy): void;
}

const dnsPort = 53;
const usualRenewMs = 5_000;

export function openGateway(options: GatewayOptions): Gateway {
  let policy = options.policy;
  let trusted: SecureContext | null = null;
  let isClosed = false;
  const limits = { ...usualLimits, ...options.limits };
  const { audit, ahead = () => true, redact = (text) => text, renewMs = usualRenewMs } = options;
  const ledger = openLedger({ audit, ahead, redact, renewMs });
  const lookups = new Lookups(addressesAmong(options.resolve ?? resolveOutside));
  const context: Context = {
    policy: () => policy,
    secrets: () => options.secrets,
    names: new Names(),
    authority: options.authority,
    ledger,
    limits,
    isBlind: options.isBlind ?? (() => false),
    outside: {
      lookups,
      deniedAddresses: new DeniedAddresses(lookups),
      upstream: options.upstream ?? null,
      dials: { underWay: 0, most: limits.connections },
      reach: () => policy.reach,
      neighbourhood: options.neighbourhood ?? ownNeighbourhood(),
      dialMs: limits.dialMs,
      heldBytes: () => heldBytesAmong(connections.count()),
      trust: () => {
        trusted ??= createSecureContext({ ca: [...rootCertificates, ...options.trustFiles.flatMap(readIfThere)] });
        return trusted;
      },
    },
  };
  const connections: Connections = openConnections(context);
  const addressOf = (name: string) => {
    const host = canonicalHost(name);
    return host === null ? null : context.names.addressOf(host, namedBy(policy, host));
  };
  const answer = (packet: Uint8Array): Uint8Array | null => {
    if (isClosed) return null;
    const answered = answerQuery(packet, addressOf);
    const line = ledger.begin({ kind: "dns", host: answered?.question?.name ?? "", port: dnsPort });
    const [sent, received] = [packet.length, answered?.reply.length ?? 0];
    if (answered === null || answered.question === null)
      line.write({ verdict: "refused", reason: "spelling", sent, received });
    else line.write({ verdict: "allowed", sent, received });
    return answered?.reply ?? null;
  };
  const asking = new Set<Socket>();
  const takeQuestions = (socket: Socket) => {
    if (asking.size >= bounds.dnsConnections) return void socket.destroy();
    asking.add(socket);
    socket.once("close", () => asking.delete(socket));
    answerQuestions(socket, answer, limits.beginningMs);
  };
  const take = (socket: Socket, port: number) => {
    socket.on("error", () => {});
    // One that was reset before it was looked at leads nowhere, and so does one that comes too late.
    const address = socket.localAddress;
    if (isClosed || address === undefined) socket.destroy();
    else if (port === dnsPort) takeQuestions(socket);
    else connections.take(socket, address.replace(/^::ffff:(?=\d+\.)/, ""), port);
  };
  return {
    take,
    answer,
    replacePolicy(next) {
      policy = next;
      connections.retire();
    },
    [Symbol.dispose]() {
      isClosed = true;
      connections.close();
      for (const socket of asking) socket.destroy();
    },
  };
}

function answerQuestions(socket: Socket, answer: (packet: Uint8Array) => Uint8Array | null, idleMs: number): void {
  const stream = new DnsStream();
  socket.setTimeout(idleMs, () => socket.destroy());
  socket.on("drain", () => socket.resume());
  socket.on("data", (bytes) => {
    for (const packet of stream.push(bytes)) {
      const reply = answer(packet);
      if (reply === null) return void socket.destroy();
      const length = Buffer.alloc(2);
      length.writeUInt16BE(reply.length);
      // Whoever asks without listening is not listened to.
      if (!socket.write(Buffer.concat([length, reply]))) socket.pause();
    }
  });
}

function readIfThere(path: string): readonly string[] {
  try {
    return [readFileSync(path, "utf8")];
  } catch {
    return [];
  }
}
