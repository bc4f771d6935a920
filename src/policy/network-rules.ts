import { PolicyError } from "../errors.ts";
import { canonicalHost, isAddress, readHostPattern, splitPort } from "./hosts.ts";
import { pathMistake } from "./network-paths.ts";
import type { NetworkRule, SecretBinding } from "./network-policy.ts";

/** A rule as an owner writes it. */
export interface WrittenRule {
  readonly host: string;
  readonly port?: number;
  readonly ports?: readonly number[];
  readonly path?: string;
  readonly paths?: readonly string[];
  readonly methods?: readonly string[];
  readonly deny?: boolean;
  readonly local?: boolean;
}

const webPorts: readonly number[] = [80, 443];

/** What `network.domains` holds: a host, with or without a port. */
export function readDomain(written: string, origin: string): NetworkRule {
  const parts = splitPort(written);
  if (parts === null) throw invalid(written, origin, "names a port that there is not", "use one from 1 to 65535");
  return readRule(parts.port === null ? { host: parts.host } : { host: parts.host, port: parts.port }, origin, written);
}

/** What `network.rules` holds. */
export function readRule(rule: WrittenRule, origin: string, written: string = rule.host): NetworkRule {
  const host = readHost(rule.host, origin, written);
  const { port, path, deny = false, local = isAddress(host) } = rule;
  if (deny && rule.local === true) {
    throw invalid(written, origin, "denies, so local means nothing", "leave one of the two out");
  }
  return {
    host,
    ports: port === undefined ? (rule.ports ?? (deny ? [] : webPorts)) : [port],
    paths: readPaths(path === undefined ? rule.paths : [path], origin),
    methods: rule.methods?.map((method) => readMethod(method, origin)) ?? null,
    deny,
    // Whoever writes an address means it.
    local,
    origin,
  };
}

export interface WrittenSecret {
  readonly hosts?: readonly string[];
  readonly headers?: readonly string[];
  readonly paths?: readonly string[];
}

/** Where a secret is put in; null where it is not masked. */
export function readBinding(name: string, secret: WrittenSecret): SecretBinding | null {
  const origin = `secrets.${name}`;
  if (secret.hosts === undefined) return null;
  return {
    name,
    hosts: secret.hosts.map((host) => readBoundHost(host, origin)),
    headers: (secret.headers ?? ["authorization", "x-api-key"]).map((header) => readHeader(header, origin)),
    paths: readPaths(secret.paths, origin),
  };
}

/** What `network.reach` holds, with the names as they are compared. */
export function readReach(reach: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const origin = "network.reach";
  return Object.fromEntries(
    Object.entries(reach).map(([written, to]) => {
      const name = canonicalHost(written);
      if (name === null || isAddress(name)) throw invalid(written, origin, "is not a name", "write that of one host");
      const parts = splitPort(to);
      const address = parts === null ? null : canonicalHost(parts.host);
      if (parts === null || address === null || !isAddress(address)) {
        throw invalid(to, origin, "is not an address", 'write "127.0.0.1:5432", or "[::1]:5432"');
      }
      const shown = address.includes(":") && parts.port !== null ? `[${address}]` : address;
      return [name, parts.port === null ? shown : `${shown}:${parts.port}`];
    }),
  );
}

function readHost(host: string, origin: string, written: string): string {
  const reading = readHostPattern(host);
  if (reading.kind === "wrong") throw invalid(written, origin, reading.wrong, reading.wayOut);
  return reading.host;
}

function readBoundHost(written: string, origin: string): string {
  const host = readHost(written, origin, written);
  if (host === "**") throw invalid(written, origin, "would send it to everybody", "name the hosts that it is for");
  return host;
}

function readPaths(paths: readonly string[] | undefined, origin: string): readonly string[] | null {
  for (const path of paths ?? []) {
    const mistake = pathMistake(path);
    if (mistake !== null) throw invalid(path, origin, mistake, "write it as /v1/items, /v1/* or /v1/**");
  }
  return paths ?? null;
}

function readMethod(method: string, origin: string): string {
  if (!/^[a-z][a-z-]*$/i.test(method)) {
    throw invalid(method, origin, "is not a method of HTTP", "write GET, POST or the like");
  }
  const read = method.toUpperCase();
  if (read !== "CONNECT") return read;
  // What comes through a tunnel is judged as if there were none, so a rule for this method would never hold.
  throw invalid(method, origin, "asks for a tunnel, which no rule is about", "name the host, with its port");
}

function readHeader(header: string, origin: string): string {
  if (/^[!#$%&'*+.^_`|~0-9a-z-]+$/i.test(header) && !unfit.includes(header.toLowerCase())) return header.toLowerCase();
  throw invalid(header, origin, "is not a header that can hold a secret", "write authorization or the like");
}

/** What says where a message goes and where it ends is never filled in. */
const unfit = ["host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect"];

function invalid(written: string, origin: string, wrong: string, wayOut: string): PolicyError {
  return new PolicyError("NETWORK_RULE_INVALID", `${origin}: ${JSON.stringify(written)} ${wrong}.`, {
    hint: `${wayOut.charAt(0).toUpperCase()}${wayOut.slice(1)}${/[?.]$/.test(wayOut) ? "" : "."}`,
    details: { origin, written },
  });
}
