import { isAddress } from "./hosts.ts";
import { hasStar } from "./network-paths.ts";
import type { DenialCode, Destination, HttpRequest, NetworkRule, Verdict } from "./network-policy.ts";

/** A refusal in words that a model can act on, or repeat to its owner. */
export function deny(code: Codes, asked: Destination | HttpRequest, rule: NetworkRule | null): Verdict {
  return {
    kind: "deny",
    code,
    rule,
    message: `${describe(asked)} is not allowed: ${reasons[code](asked, rule)}.`,
    remedy: remedies[code](asked, rule),
  };
}

type Words = (asked: Destination | HttpRequest, rule: NetworkRule | null) => string;
/** The gateway finds words for the others. */
type Codes = Exclude<DenialCode, "address" | "protocol" | "key">;

const reasons: Readonly<Record<Codes, Words>> = {
  host: () => "no rule for this host",
  port: ({ port }) => `there are rules for this host, but none for port ${port}`,
  path: () => "there are rules for this host, but none for this path",
  method: (asked) => `this path may be asked for, but not with ${methodOf(asked)}`,
  denied: (_, rule) => `it is denied by ${rule?.origin}`,
  spelling: () => "it is spelled in a way that others may read otherwise",
};

const remedies: Readonly<Record<Codes, Words>> = {
  host: allowHost,
  port: allowHost,
  path: allowPath,
  method: allowPath,
  denied: () => "Only the owner can change that rule. Do without, or ask the owner.",
  spelling: () =>
    "Spell it plainly: the host in its usual form, without a dot at its end; the path without dot segments, double slashes and needless escapes; the method in capitals.",
};

function allowHost({ host, port }: Destination): string {
  if (isAddress(host))
    return "Ask for a host by its name. Addresses are not opened for whoever asks; only the owner knows which are harmless.";
  const shown = shownHost(host);
  const name = port === 80 || port === 443 ? shown : `${shown}:${port}`;
  return `The owner can allow it with \`podbot … --allow ${name}\`, or in the configuration: [network] domains = [${JSON.stringify(name)}].`;
}

function allowPath(asked: Destination | HttpRequest): string {
  if (hasStar(pathOf(asked))) return "No rule can name a path with a star in it alone. Do without, or ask the owner.";
  return `The owner can allow it in the configuration: ${ruleText(asked)}.`;
}

function ruleText(asked: Destination | HttpRequest): string {
  const { host, port } = asked;
  const fields = [
    `host = ${JSON.stringify(cut(host))}`,
    `port = ${port}`,
    `path = ${JSON.stringify(cut(pathOf(asked)))}`,
    `methods = [${JSON.stringify(cut(methodOf(asked)))}]`,
  ];
  return `[network] rules = [{ ${fields.join(", ")} }]`;
}

function describe(asked: Destination | HttpRequest): string {
  const host = shownHost(asked.host);
  if (!("method" in asked)) return `A connection to ${host}:${asked.port}`;
  const scheme = { 80: "http://", 443: "https://" }[asked.port];
  const place = scheme === undefined ? `${host}:${asked.port}` : `${scheme}${host}`;
  return cut(`${asked.method} ${place}${asked.path}`);
}

function methodOf(asked: Destination | HttpRequest): string {
  return (asked as HttpRequest).method;
}

function pathOf(asked: Destination | HttpRequest): string {
  return (asked as HttpRequest).path;
}

function shownHost(host: string): string {
  return cut(host.includes(":") ? `[${host}]` : host);
}

/** Whoever asks may ask for something endless, or for something that acts on a terminal. */
function cut(text: string): string {
  const shown = text.slice(0, 300).replace(/[^\x20-\x7e]/g, "?");
  return text.length > 300 ? `${shown}…` : shown;
}
