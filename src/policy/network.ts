import { canonicalHost, hostMatcher, isAddress, matchesHost } from "./hosts.ts";
import { foldCase, isLoosePath, isOddPath, pathMatcher, segmentsOf } from "./network-paths.ts";
import type { Destination, HttpRequest, NetworkPolicy, NetworkRule, Verdict } from "./network-policy.ts";
import { deny } from "./network-words.ts";

export { canonicalHost } from "./hosts.ts";
export type * from "./network-policy.ts";

/** What is allowed depends on path or method, so that the request must be seen. */
export interface Inspect {
  readonly kind: "inspect";
}

/** Whether a connection may be made. Nothing of it has been read yet but where it leads. */
export function judgeConnection(policy: NetworkPolicy, to: Destination): Verdict | Inspect {
  const found = find(policy, to);
  if (found === null) return deny("spelling", to, null);
  const denies = found.here.filter(({ rule }) => rule.deny);
  const allows = found.here.filter(({ rule }) => !rule.deny);
  const whole = denies.find(isWhole);
  if (whole !== undefined) return deny("denied", to, whole.rule);
  if (denies.length > 0 && (allows.length > 0 || policy.learn)) return { kind: "inspect" };
  const granted = allows.filter(isWhole);
  if (granted.length > 0 || policy.learn) return allow(granted, found.led);
  return allows.length > 0 ? { kind: "inspect" } : deny(found.named ? "port" : "host", to, null);
}

/** Whether a request may be made: the verdict on all of it. */
export function judgeRequest(policy: NetworkPolicy, request: HttpRequest): Verdict {
  const found = find(policy, request);
  if (found === null) return deny("spelling", request, null);
  const { here } = found;
  const isOdd =
    (here.some(({ path }) => path !== null) && isOddPath(request.path)) ||
    (here.some(({ path, rule }) => path !== null && rule.deny) && isLoosePath(request.path)) ||
    (here.some(({ methods }) => methods !== null) && !/^[A-Z][A-Z-]*$/.test(request.method));
  if (isOdd) return deny("spelling", request, null);
  const segments = segmentsOf(request.path);
  const onPath = here.filter((entry) => coversPath(entry, segments));
  const covering = onPath.filter((entry) => coversMethod(entry, request));
  const refusal = covering.find(({ rule }) => rule.deny);
  if (refusal !== undefined) return deny("denied", request, refusal.rule);
  if (covering.length > 0 || policy.learn) return allow(covering, found.led);
  if (here.every(({ rule }) => rule.deny)) return deny(found.named ? "port" : "host", request, null);
  return deny(onPath.some(({ rule }) => !rule.deny) ? "method" : "path", request, null);
}

/** Whether requests there must be seen: a rule asks for path or method, a secret is put in, or all is noted. */
export function needsInspection(policy: NetworkPolicy, to: Destination): boolean {
  const found = find(policy, to);
  if (found === null) return false;
  const isBound = policy.secrets.some(({ hosts }) => hosts.some((pattern) => matchesHost(pattern, found.host)));
  return policy.learn || isBound || found.here.some((entry) => !isWhole(entry));
}

/** Whether a rule for the host asks for path or method. */
export function isByRequest(policy: NetworkPolicy, to: Destination): boolean {
  return find(policy, to)?.here.some((entry) => !isWhole(entry)) ?? false;
}

/** Whether a rule for the host has paths. */
export function judgesPaths(policy: NetworkPolicy, to: Destination): boolean {
  return find(policy, to)?.here.some(({ path }) => path !== null) ?? false;
}

/**
 * Hosts that a rule denies at a port while everything else may be reached, so that their addresses would do as well. A
 * pattern has none, and where only listed hosts are allowed, their addresses are, too, also those that a denied host shares.
 */
export function deniedHosts({ learn, rules }: NetworkPolicy, port: number): readonly string[] {
  if (!learn) return [];
  const whole = rules.filter((rule) => rule.deny && isAt(rule, port) && rule.paths === null && rule.methods === null);
  return whole.map(({ host }) => host).filter((host) => !host.includes("*"));
}

/** How a rule that allows something names a host: in full, or by a pattern. Null where none does. */
export function namedBy(policy: NetworkPolicy, host: string): "name" | "pattern" | null {
  const { exact, globs } = compile(policy);
  if (exact.get(host)?.some(({ rule }) => !rule.deny)) return "name";
  const labels = host.split(".");
  return globs.some((entry) => !entry.rule.deny && entry.host(labels)) ? "pattern" : null;
}

/**
 * What is asked for besides the web: while a box learns, it must find a door. None at which programs of its own would
 * listen: a door is taken.
 */
const learningPorts = [22, 25, 465, 587, 993, 2376, 6443, 8443, 8883, 9418];
/** The web, and where proxies listen by custom. */
const alwaysPorts = [80, 443, 3128];

/** The ports at which a box has doors, in order. */
export function doorPorts({ learn, rules }: NetworkPolicy): readonly number[] {
  const named = rules.filter((rule) => !rule.deny).flatMap(({ ports }) => ports);
  const learnt = learn ? learningPorts : [];
  return [...new Set([...alwaysPorts, ...learnt, ...named])].sort((a, b) => a - b);
}

/** A rule, ready to be asked. */
interface Entry {
  readonly rule: NetworkRule;
  readonly host: (labels: readonly string[]) => boolean;
  readonly path: readonly ((segments: readonly string[]) => boolean)[] | null;
  readonly methods: readonly string[] | null;
}

interface Compiled {
  readonly exact: ReadonlyMap<string, readonly Entry[]>;
  readonly globs: readonly Entry[];
}

/** Only a memory of what policies say: each is compiled once, when it is first asked. */
const compiled = new WeakMap<NetworkPolicy, Compiled>();

function compile(policy: NetworkPolicy): Compiled {
  const known = compiled.get(policy);
  if (known !== undefined) return known;
  const entries = policy.rules.map(
    (rule): Entry => ({
      rule,
      host: hostMatcher(rule.host),
      path: rule.paths?.map((pattern) => (rule.deny ? foldedMatcher(pattern) : pathMatcher(pattern))) ?? null,
      methods: rule.methods,
    }),
  );
  const exact = new Map<string, Entry[]>();
  for (const entry of entries.filter(({ rule }) => !rule.host.includes("*"))) {
    exact.set(entry.rule.host, [...(exact.get(entry.rule.host) ?? []), entry]);
  }
  const made = { exact, globs: entries.filter(({ rule }) => rule.host.includes("*")) };
  compiled.set(policy, made);
  return made;
}

/** What is denied is denied in capitals as well: many servers do not tell them apart. */
function foldedMatcher(pattern: string): (segments: readonly string[]) => boolean {
  const matches = pathMatcher(pattern, foldCase);
  return (segments) => matches(segments.map(foldCase));
}

interface Found {
  readonly host: string;
  /** The rules for this host and port. */
  readonly here: readonly Entry[];
  /** Whether a rule allows something on this host, at whatever port. */
  readonly named: boolean;
  /** Whether the owner has said where the host is dialled. */
  readonly led: boolean;
}

/** Null where the host is spelled oddly. */
function find(policy: NetworkPolicy, to: Destination): Found | null {
  const host = canonicalHost(to.host);
  if (host === null) return null;
  const { exact, globs } = compile(policy);
  const labels = host.split(".");
  const entries = [...(exact.get(host) ?? []), ...(isAddress(host) ? [] : globs.filter((entry) => entry.host(labels)))];
  return {
    host,
    here: entries.filter(({ rule }) => isAt(rule, to.port)),
    named: entries.some(({ rule }) => !rule.deny),
    led: Object.hasOwn(policy.reach, host),
  };
}

function isAt({ ports, deny }: NetworkRule, port: number): boolean {
  return ports.includes(port) || (deny && ports.length === 0);
}

function isWhole({ path, methods }: Entry): boolean {
  return path === null && methods === null;
}

function coversPath({ path }: Entry, segments: readonly string[]): boolean {
  return path?.some((matches) => matches(segments)) ?? true;
}

function coversMethod({ methods }: Entry, request: HttpRequest): boolean {
  return methods?.includes(request.method) ?? true;
}

/** Any rule that allows it suffices, and any that lets it lead to a private address. */
function allow(granted: readonly Entry[], led: boolean): Verdict {
  return { kind: "allow", rule: granted[0]?.rule ?? null, local: led || granted.some(({ rule }) => rule.local) };
}
