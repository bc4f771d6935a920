import { lookup } from "node:dns/promises";
import { connect, isIP, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { connect as connectTls, type SecureContext, type TLSSocket } from "node:tls";
import type { Upstream } from "../upstream/upstream.ts";
import { addressKind, isAmong } from "./address.ts";
import type { DeniedAddresses } from "./denied-addresses.ts";
import { bounds } from "./limits.ts";
import type { Lookups } from "./lookups.ts";

/** Where something leads, and whether it may lead to this machine or its neighbours. */
export interface Way {
  readonly host: string;
  readonly port: number;
  readonly local: boolean;
  /** Hosts that are denied, and with them the addresses that they lead to. Default: none. */
  readonly denied?: readonly string[];
}

export interface Outside {
  /** Names, as this machine knows them. */
  readonly lookups: Lookups;
  readonly deniedAddresses: DeniedAddresses;
  /** The networks that this machine is in: its own addresses and its neighbours', which may be public as well. */
  readonly neighbourhood: () => readonly string[];
  /** The proxy by which the world is reached; null: by none. */
  readonly upstream: Upstream | null;
  /** How many connections are being opened. Who asked for one may be gone long before it is there. */
  readonly dials: { underWay: number; readonly most: number };
  /** Names that are dialled at an address of the owner's choice. */
  readonly reach: () => Readonly<Record<string, string>>;
  /** Whom the gateway believes. Made when the first certificate is to be checked. */
  readonly trust: () => SecureContext;
  /** How many bytes of each connection may wait here. */
  readonly heldBytes: () => number;
  /** How long a name may take to be resolved, and an address to answer. */
  readonly dialMs: number;
}

/** Why nothing was reached: `address` and `denied` are refusals, the others are the world's. */
export class DialFailure extends Error {
  readonly reason: "address" | "denied" | "name" | "connection" | "certificate";

  constructor(reason: DialFailure["reason"], message: string) {
    super(message);
    this.reason = reason;
  }

  get isRefusal(): boolean {
    return this.reason === "address" || this.reason === "denied";
  }
}

/** After so long the next address is tried as well. */
const patienceMs = 250;

/** Known to Node, though not to its types. */
function heldAtMost({ heldBytes }: Outside): object {
  return { highWaterMark: heldBytes() };
}

export async function resolveOutside(host: string): Promise<readonly string[]> {
  return (await lookup(host, { all: true, verbatim: true })).map(({ address }) => address);
}

/** Only what is an address: all else would be resolved once more, by somebody else. */
export function addressesAmong(resolve: typeof resolveOutside): typeof resolveOutside {
  return async (host) => (await resolve(host)).filter((address) => isIP(address) !== 0);
}

/** For so long this machine is taken to stay where it is. */
const settledMs = 5_000;

/** As the interfaces of this machine have it. */
export function ownNeighbourhood(): () => readonly string[] {
  let known: readonly string[] = [];
  let until = Number.NEGATIVE_INFINITY;
  return () => {
    const now = performance.now();
    if (now < until) return known;
    until = now + settledMs;
    known = Object.values(networkInterfaces()).flatMap((each) => each?.flatMap(({ cidr }) => cidr ?? []) ?? []);
    return known;
  };
}

/** Connects to one of the addresses that were looked at, and to no other; or has the owner's proxy do it. */
export async function dial(way: Way, outside: Outside, { allowHalfOpen = false } = {}): Promise<Socket> {
  const { dials } = outside;
  if (dials.underWay >= dials.most)
    throw new DialFailure("connection", `${way.host}:${way.port} is not tried: too many connections are being opened`);
  dials.underWay++;
  try {
    return await open(way, outside, allowHalfOpen);
  } finally {
    dials.underWay--;
  }
}

async function open(way: Way, outside: Outside, allowHalfOpen: boolean): Promise<Socket> {
  const { upstream } = outside;
  if (upstream !== null && (await isSentOn(way, outside, upstream))) {
    const { openTunnel } = await import("../upstream/tunnel.ts");
    const { dialMs: withinMs, trust } = outside;
    try {
      return await openTunnel(upstream, way, { withinMs, trust, allowHalfOpen, heldBytes: outside.heldBytes() });
    } catch (error) {
      throw new DialFailure("connection", `${way.host}:${way.port} cannot be reached: ${messageOf(error)}`);
    }
  }
  const { addresses, port } = await addressesOf(way, outside);
  try {
    return await connectToFirst(
      addresses,
      (address) => {
        return connect({
          host: address,
          port,
          noDelay: true,
          keepAlive: true,
          allowHalfOpen,
          autoSelectFamily: false,
          ...heldAtMost(outside),
        });
      },
      outside.dialMs,
    );
  } catch (error) {
    throw new DialFailure("connection", `${way.host}:${way.port} cannot be reached: ${messageOf(error)}`);
  }
}

export async function dialTls(way: Way, alpn: readonly string[], outside: Outside): Promise<TLSSocket> {
  const socket = await dial(way, outside);
  const secure = connectTls({
    socket,
    secureContext: outside.trust(),
    ...heldAtMost(outside),
    ALPNProtocols: [...alpn],
    ...(isIP(way.host) === 0 ? { servername: way.host } : {}),
    host: way.host,
    // Whatever this process was told by its environment.
    rejectUnauthorized: true,
  });
  try {
    await happened(secure, "secureConnect", outside.dialMs);
    return secure;
  } catch (error) {
    socket.destroy();
    const place = `${way.host}:${way.port}`;
    const { code = "", reason } = error as { readonly code?: string; readonly reason?: string };
    const isProtocol = code.startsWith("ERR_SSL_") && reason !== undefined;
    if (isProtocol) throw new DialFailure("connection", `${place} does not speak TLS with us: ${reason}`);
    throw new DialFailure("certificate", `${place} does not prove who it is: ${messageOf(error)}`);
  }
}

/**
 * Whether the proxy is asked to lead there. It resolves the name once more, and so chooses the address: of a name, none
 * that is known here may be refused. One that is not known here may be known to the proxy. What leads to this machine or
 * its neighbours, and may, is not the proxy's business.
 */
async function isSentOn(way: Way, outside: Outside, upstream: Upstream): Promise<boolean> {
  const { host, port, local } = way;
  if (Object.hasOwn(outside.reach(), host)) return false;
  const { goesDirect } = await import("../upstream/upstream.ts");
  if (goesDirect(upstream, host, port)) return false;
  const kindOf = kinds(outside.neighbourhood());
  const addresses = isIP(host) === 0 ? await resolveIfKnown(host, outside) : [host];
  const near = addresses.find((address) => kindOf(address) !== "public");
  if (near !== undefined && !local) throw refusedAddress(host, near, kindOf(near));
  await exceptDenied(addresses, way, outside);
  return near === undefined;
}

/**
 * Empty where nobody here knows the name. One that nobody has answered for yet is not of those: it may lead to this
 * machine, and an agent can see to it that answers are slow.
 */
async function resolveIfKnown(host: string, outside: Outside): Promise<readonly string[]> {
  if (outside.lookups.isUnknown(host)) return [];
  try {
    return await resolveOrFail(host, outside);
  } catch (error) {
    if (outside.lookups.isUnknown(host)) return [];
    throw error;
  }
}

async function addressesOf(
  way: Way,
  outside: Outside,
): Promise<{ readonly addresses: readonly string[]; readonly port: number }> {
  const { host, port, local } = way;
  const known = outside.reach();
  if (Object.hasOwn(known, host)) return splitPort(known[host] as string, port);
  const addresses = isIP(host) === 0 ? await resolveOrFail(host, outside) : [host];
  const kindOf = kinds(local ? [] : outside.neighbourhood());
  const allowed = local ? addresses : addresses.filter((address) => kindOf(address) === "public");
  if (allowed.length > 0)
    return { addresses: await exceptDenied(allowed.slice(0, bounds.addresses), way, outside), port };
  const first = addresses[0] as string;
  throw refusedAddress(host, first, kindOf(first));
}

/** Without those that a denied host leads to, too. Fails where none is left. */
async function exceptDenied(
  addresses: readonly string[],
  { host, denied = [] }: Way,
  { deniedAddresses, dialMs }: Outside,
): Promise<readonly string[]> {
  if (denied.length === 0 || addresses.length === 0) return addresses;
  const owners = await Promise.all(addresses.map((address) => deniedAddresses.hostAt(address, denied, dialMs))).catch(
    (error) => {
      throw new DialFailure("name", `it cannot be said whether ${host} is a denied host: ${messageOf(error)}`);
    },
  );
  const left = addresses.filter((_, index) => owners[index] === null);
  if (left.length > 0) return left;
  throw new DialFailure("denied", `${host} leads to ${addresses[0]}, where ${owners[0]} is, which a rule denies`);
}

/** What an address is, seen from the middle of these networks. */
function kinds(near: readonly string[]): (address: string) => string {
  return (address) => {
    const kind = addressKind(address) ?? "strange";
    return kind === "public" && isAmong(near, address) ? "neighbouring" : kind;
  };
}

function refusedAddress(host: string, address: string, kind: string): DialFailure {
  return new DialFailure("address", `${host} leads to ${address}, which is a ${kind} address`);
}

async function resolveOrFail(host: string, { lookups, dialMs }: Outside): Promise<readonly string[]> {
  try {
    return await lookups.find(host, dialMs);
  } catch (error) {
    throw new DialFailure("name", `${host} is not known: ${messageOf(error)}`);
  }
}

/** `address`, `address:port`, `[address]:port`. */
function splitPort(written: string, port: number): { readonly addresses: readonly string[]; readonly port: number } {
  const [, bracketed, plain, number] = /^(?:\[(.+)\]|([^:]+))(?::(\d+))?$/.exec(written) ?? [];
  const address = bracketed ?? plain ?? written;
  return { addresses: [address], port: number === undefined ? port : Number(number) };
}

/** One after the other, without waiting for one that is slow to fail. The first that answers is taken. */
function connectToFirst(
  addresses: readonly string[],
  begin: (address: string) => Socket,
  withinMs: number,
): Promise<Socket> {
  const waiting = [...addresses];
  const trying = new Set<Socket>();
  let timer: NodeJS.Timeout | undefined;
  return new Promise((resolve, reject) => {
    const next = () => {
      clearTimeout(timer);
      const address = waiting.shift();
      if (address === undefined) return;
      const socket = begin(address);
      trying.add(socket);
      if (waiting.length > 0) timer = setTimeout(next, patienceMs);
      happened(socket, "connect", withinMs).then(
        () => {
          clearTimeout(timer);
          waiting.length = 0;
          trying.delete(socket);
          for (const other of trying) other.destroy();
          resolve(socket);
        },
        (error) => {
          trying.delete(socket);
          if (waiting.length > 0) next();
          else if (trying.size === 0) reject(error);
        },
      );
    };
    next();
  });
}

/** Resolves when a socket is what it should be; a failure before that destroys it. */
function happened(socket: Socket, event: "connect" | "secureConnect", withinMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (error?: Error) => {
      clearTimeout(timer);
      socket.off(event, onDone).off("error", onError).off("close", onClose);
      socket.on("error", () => {});
      if (error === undefined) return resolve();
      socket.destroy();
      reject(error);
    };
    const timer = setTimeout(() => settle(new Error("nobody answered in time")), withinMs);
    const onDone = () => settle();
    const onError = (error: Error) => settle(error);
    const onClose = () => settle(new Error("the connection was closed"));
    socket.on(event, onDone).on("error", onError).on("close", onClose);
  });
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
