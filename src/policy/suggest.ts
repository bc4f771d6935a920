import { groupBy } from "./group.ts";
import { canonicalHost, isAddress } from "./hosts.ts";
import { hasStar, isOddPath } from "./network-paths.ts";
import { generalize, patternOf } from "./suggest-paths.ts";
import { type Left, remarksOf } from "./suggest-remarks.ts";

/** What is known of something that was asked for: an entry of an audit has it all. */
export interface Asked {
  readonly kind: "dns" | "tcp" | "tls" | "http";
  readonly verdict: "allowed" | "refused" | "failed";
  readonly host: string;
  readonly port: number;
  readonly method?: string;
  readonly path?: string;
  readonly status?: number;
  readonly reason?: string;
}

export interface Tally {
  readonly asked: number;
  readonly refused: number;
}

/** One of `network.domains`. */
export interface SuggestedDomain extends Tally {
  readonly domain: string;
}

/** One of `network.rules`. */
export interface SuggestedRule extends Tally {
  readonly host: string;
  readonly ports: readonly number[];
  readonly methods: readonly string[];
  readonly paths: readonly string[];
}

export interface Suggestion {
  readonly domains: readonly SuggestedDomain[];
  readonly rules: readonly SuggestedRule[];
  /** What was left out and why, and what else could be done. One line each, in plain ASCII. */
  readonly remarks: readonly string[];
}

export interface SuggestOptions {
  /** No paths and methods, hosts alone. Default: false. */
  readonly hostsOnly?: boolean;
}

/** Refusals that a rule can mend. The others are meant, or the owner has said so. */
export const mendable: readonly (string | undefined)[] = ["host", "port", "path", "method"];

/** The smallest rules that would have allowed what a run asked for, and what it got. */
export function suggestRules(entries: Iterable<Asked>, { hostsOnly = false }: SuggestOptions = {}): Suggestion {
  const places = new Map<string, Place>();
  const left = new Map<string, Left>();
  for (const entry of entries) {
    if (entry.kind === "dns") continue;
    const why = whyLeft(entry);
    if (why === null) count(placeOf(places, entry), entry, hostsOnly);
    else countLeft(left, entry, why);
  }
  const all = [...places.values()].sort(byHostAndPort);
  // One connection of which nothing is known must not open what is known by its paths.
  const [wide, narrow] = [
    all.filter(({ requests }) => requests.size === 0),
    all.filter(({ requests }) => requests.size > 0),
  ];
  const domains = [...groupBy(wide, ({ host }) => host).values()].flatMap(domainsOf);
  // What failed once and went well another time is no loss.
  const lost = [...left.values()].filter(
    ({ why, host, port }) => why.kind !== "failed" || !places.has(`${host} ${port}`),
  );
  const unseen = narrow
    .filter(({ opaque }) => opaque > 0)
    .map(({ host, port, opaque }): Left => ({ host, port, why: { kind: "opaque" }, count: opaque }));
  return { domains, rules: joinPorts(narrow.flatMap(rulesOf)), remarks: remarksOf([...lost, ...unseen], domains) };
}

/** Null for what a rule should allow. */
function whyLeft({ kind, verdict, host, method, path, status, reason }: Asked): Left["why"] | null {
  const name = canonicalHost(host);
  if (name === null) return { kind: "host" };
  if (verdict === "refused") {
    if (!mendable.includes(reason)) return { kind: "refused", reason: reason ?? "" };
    // A rule with an address is meant, and allows it also where it is a private one.
    if (isAddress(name)) return { kind: "address" };
  }
  // What was answered and then broken off was allowed. 502 is the gateway's own word for: nobody answered.
  if (verdict === "failed" && (status === undefined || status === 502)) return { kind: "failed", reason: reason ?? "" };
  if (kind !== "http" || method === "CONNECT") return null;
  const isOdd = (path !== undefined && isOddPath(path)) || (method !== undefined && !/^[A-Z][A-Z-]*$/.test(method));
  if (isOdd) return { kind: "spelling" };
  return path !== undefined && hasStar(path) ? { kind: "star" } : null;
}

interface Place extends Tally {
  readonly host: string;
  readonly port: number;
  /** How often something was asked for of which path or method are not known. */
  opaque: number;
  asked: number;
  refused: number;
  /** By pattern of the path. */
  readonly requests: Map<string, { readonly methods: Set<string>; asked: number; refused: number }>;
}

function placeOf(places: Map<string, Place>, entry: Asked): Place {
  const host = canonicalHost(entry.host) as string;
  const key = `${host} ${entry.port}`;
  const known = places.get(key);
  if (known !== undefined) return known;
  const place: Place = { host, port: entry.port, opaque: 0, asked: 0, refused: 0, requests: new Map() };
  places.set(key, place);
  return place;
}

function count(place: Place, { kind, verdict, method, path }: Asked, hostsOnly: boolean): void {
  const refused = verdict === "refused" ? 1 : 0;
  place.asked += 1;
  place.refused += refused;
  if (hostsOnly || kind !== "http" || method === undefined || path === undefined || method === "CONNECT") {
    place.opaque += 1;
    return;
  }
  const pattern = patternOf(path);
  const request = place.requests.get(pattern) ?? { methods: new Set(), asked: 0, refused: 0 };
  request.methods.add(method);
  request.asked += 1;
  request.refused += refused;
  place.requests.set(pattern, request);
}

function countLeft(left: Map<string, Left>, { host, port }: Asked, why: Left["why"]): void {
  const name = canonicalHost(host) ?? host;
  const key = JSON.stringify([name, port, why.kind]);
  const known = left.get(key) ?? { host: name, port, why, count: 0 };
  known.count += 1;
  left.set(key, known);
}

/** The ports of the web go without saying where both were asked for, since a host without a port has both. */
function domainsOf(places: readonly Place[]): readonly SuggestedDomain[] {
  const web = places.filter(({ port }) => port === 80 || port === 443);
  const both = web.length === 2 ? web : [];
  const others = places.filter((place) => !both.includes(place));
  return [
    ...(both[0] === undefined ? [] : [{ domain: both[0].host, ...sum(both) }]),
    ...others.map(({ host, port, asked, refused }) => ({ domain: withPort({ host, port }), asked, refused })),
  ];
}

function withPort({ host, port }: Pick<Place, "host" | "port">): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** As `network.domains` and `--allow` name it: the ports of the web go without saying. */
export function domainOf({ host, port }: { readonly host: string; readonly port: number }): string {
  if (port === 80 || port === 443) return host;
  return withPort({ host, port });
}

/** One rule for all paths that were asked for with the same methods. */
function rulesOf({ host, port, requests }: Place): readonly SuggestedRule[] {
  const alike = groupBy(requests, ([, { methods }]) => [...methods].sort().join(" "));
  return [...alike].map(([methods, same]) => ({
    host,
    ports: [port],
    methods: methods.split(" "),
    paths: generalize(same.map(([pattern]) => pattern)),
    ...sum(same.map(([, tally]) => tally)),
  }));
}

/** The same at several ports is one rule. */
function joinPorts(rules: readonly SuggestedRule[]): readonly SuggestedRule[] {
  const same = groupBy(rules, ({ host, methods, paths }) => JSON.stringify([host, methods, paths]));
  return [...same.values()].map((group) => ({
    ...(group[0] as SuggestedRule),
    ports: group.flatMap(({ ports }) => ports),
    ...sum(group),
  }));
}

function sum(tallies: readonly Tally[]): Tally {
  return tallies.reduce(
    (total, { asked, refused }) => ({ asked: total.asked + asked, refused: total.refused + refused }),
    { asked: 0, refused: 0 },
  );
}

function byHostAndPort(one: Place, other: Place): number {
  return one.host === other.host ? one.port - other.port : one.host < other.host ? -1 : 1;
}
