import { parseAddress } from "./address-bytes.ts";

/** Where an address leads. Only "public" is open to names and addresses that no rule calls local. */
export type AddressKind = "public" | "loopback" | "private" | "link-local" | "metadata" | "reserved";

/**
 * By the registries of special addresses of IANA; what is longest stands first. Also what is globally reachable there
 * is reserved here where it is no host that one would name: relays, anycast services, multicast.
 */
const ranges4 = rangesOf<AddressKind>([
  ["169.254.169.254/32", "metadata"],
  ["169.254.170.2/32", "metadata"],
  ["169.254.170.23/32", "metadata"],
  ["100.100.100.200/32", "metadata"],
  ["168.63.129.16/32", "metadata"],
  ["192.0.0.192/32", "metadata"],
  ["192.0.0.0/24", "reserved"],
  ["192.0.2.0/24", "reserved"],
  ["192.31.196.0/24", "reserved"],
  ["192.52.193.0/24", "reserved"],
  ["192.88.99.0/24", "reserved"],
  ["192.175.48.0/24", "reserved"],
  ["198.51.100.0/24", "reserved"],
  ["203.0.113.0/24", "reserved"],
  ["169.254.0.0/16", "link-local"],
  ["192.168.0.0/16", "private"],
  ["198.18.0.0/15", "reserved"],
  ["172.16.0.0/12", "private"],
  ["100.64.0.0/10", "private"],
  ["0.0.0.0/8", "reserved"],
  ["10.0.0.0/8", "private"],
  ["127.0.0.0/8", "loopback"],
  ["224.0.0.0/4", "reserved"],
  ["240.0.0.0/4", "reserved"],
]);
const ranges6 = rangesOf<AddressKind>([
  ["::1/128", "loopback"],
  ["::/128", "reserved"],
  ["fd00:ec2::254/128", "metadata"],
  ["fd20:ce::254/128", "metadata"],
  ["fd00:c1::a9fe:a9fe/128", "metadata"],
  ["2001:db8::/32", "reserved"],
  ["2001::/23", "reserved"],
  ["3fff::/20", "reserved"],
  ["fe80::/10", "link-local"],
  ["fec0::/10", "private"],
  ["fc00::/7", "private"],
  // All that has been given out, the rest being for days to come.
  ["2000::/3", "public"],
]);
/** Prefixes after which an address of version 4 stands, and leads there: where it begins, in bytes. */
const embeddings = rangesOf<number>([
  ["::ffff:0:0/96", 12],
  ["::ffff:0:0:0/96", 12],
  ["::/96", 12],
  ["64:ff9b::/96", 12],
  ["2002::/16", 2],
]);

/** Null for what is no address, or none in its canonical spelling: others may read it as another one. */
export function addressKind(literal: string): AddressKind | null {
  const bytes = parseAddress(literal);
  return bytes === null ? null : kindOf(bytes);
}

export function isPublic(literal: string): boolean {
  return addressKind(literal) === "public";
}

/** Whether an address is in one of these networks, each written as `address/bits`. */
export function isAmong(networks: readonly string[], literal: string): boolean {
  const bytes = parseAddress(literal);
  if (bytes === null) return false;
  const address = embeddedIn(bytes) ?? bytes;
  return networks.some((network) => {
    const [base, bits] = network.split("/") as [string, string];
    const within = parseAddress(base);
    return within?.length === address.length && isWithin(address, { base: within, bits: Number(bits) });
  });
}

function kindOf(bytes: Uint8Array): AddressKind {
  if (bytes.length === 4) return meaningIn(ranges4, bytes) ?? "public";
  const embedded = embeddedIn(bytes);
  return embedded === null ? (meaningIn(ranges6, bytes) ?? "reserved") : kindOf(embedded);
}

/** The address of version 4 to which one of version 6 leads; null where it is one of its own. */
function embeddedIn(bytes: Uint8Array): Uint8Array | null {
  const at = bytes.length === 4 || isPlain(bytes) ? null : meaningIn(embeddings, bytes);
  return at === null ? null : bytes.subarray(at, at + 4);
}

/** "::" and "::1" are not addresses of version 4, though they look like 0.0.0.0 and 0.0.0.1. */
function isPlain(bytes: Uint8Array): boolean {
  return bytes.subarray(0, 15).every((byte) => byte === 0);
}

interface Range<Meaning> {
  readonly base: Uint8Array;
  readonly bits: number;
  readonly meaning: Meaning;
}

function rangesOf<Meaning>(table: readonly (readonly [range: string, meaning: Meaning])[]): readonly Range<Meaning>[] {
  return table.map(([range, meaning]) => {
    const [base, bits] = range.split("/") as [string, string];
    return { base: parseAddress(base) as Uint8Array, bits: Number(bits), meaning };
  });
}

function meaningIn<Meaning>(ranges: readonly Range<Meaning>[], address: Uint8Array): Meaning | null {
  return ranges.find((range) => isWithin(address, range))?.meaning ?? null;
}

function isWithin(address: Uint8Array, { base, bits }: Omit<Range<unknown>, "meaning">): boolean {
  return base.every((byte, index) => {
    const kept = Math.min(8, Math.max(0, bits - 8 * index));
    return ((byte ^ (address[index] as number)) & (0xff00 >> kept) & 0xff) === 0;
  });
}
