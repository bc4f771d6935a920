import { groupBy } from "./group.ts";

/** Something that no suggested rule allows, and why not. */
export interface Left {
  readonly host: string;
  readonly port: number;
  readonly why:
    | { readonly kind: "host" | "address" | "spelling" | "star" | "opaque" }
    | { readonly kind: "refused" | "failed"; readonly reason: string };
  count: number;
}

const mostRemarks = 20;

/** One line each. What comes from inside stands in quotes, in plain letters: nobody's terminal or file obeys it. */
export function remarksOf(left: readonly Left[], domains: readonly { readonly domain: string }[]): readonly string[] {
  const told = left
    .slice(0, mostRemarks)
    .map((one) => `Left out: ${quoted(short(`${one.host}:${one.port}`))} ${whyWords(one)}`);
  const untold = left.length - told.length;
  return [
    ...globRemarks(domains.map(({ domain }) => domain)),
    ...told,
    ...(untold === 0 ? [] : [`Left out: ${untold} more; \`podbot audit\` shows them.`]),
  ];
}

function whyWords({ why, count, host, port }: Left): string {
  switch (why.kind) {
    case "host":
      return `(${times(count)}) is no name that a rule can hold.`;
    case "address":
      return `(${times(count)}) was asked for by its address. A rule would allow it even where that is a private one.`;
    case "spelling":
      return `(${times(count)}) was asked for paths or methods that are spelled oddly, which no rule allows.`;
    case "star":
      return `(${times(count)}) was asked for paths with a * in them. No rule can name these alone.`;
    case "opaque":
      return `carried ${times(count)} something of which no path is known, beside requests. Only a rule without paths would allow that, and with it all requests: [[network.rules]] host = ${quoted(host)}, port = ${port}.`;
    case "refused":
      return `was refused ${times(count)}: ${refusals[why.reason] ?? quoted(short(why.reason))}.`;
    case "failed":
      return `failed ${times(count)}: ${quoted(short(why.reason))}.`;
  }
}

const refusals: Readonly<Record<string, string>> = {
  denied: "a rule denies it, and that wins over what allows",
  address: "it leads to a private address; a rule with local = true would allow that",
  spelling: "it is spelled oddly, which no rule allows",
  protocol: "it is not HTTP, and rules for paths or a secret want to see requests there",
};

/** A wider rule is the owner's to think of: it is said, and not done. */
function globRemarks(domains: readonly string[]): readonly string[] {
  const names = domains.map((domain) => domain.replace(/:(?:80|443)$/, "")).filter((domain) => !domain.includes(":"));
  const families = groupBy(names, (name) => name.slice(name.indexOf(".") + 1));
  return [...families]
    .filter(([parent, members]) => members.length >= 3 && parent.split(".").length >= 3 && !/\.\d+$/.test(parent))
    .map(
      ([parent, members]) => `"*.${parent}" would stand for ${members.length} of these, and for any other name there.`,
    );
}

export function times(count: number): string {
  return count === 1 ? "once" : count === 2 ? "twice" : `${count} times`;
}

const longestQuote = 200;

export function short(text: string): string {
  return text.length > longestQuote ? `${text.slice(0, longestQuote)}...` : text;
}

/** In ASCII and on one line; also fit to be a text of TOML. */
export function quoted(text: string): string {
  return JSON.stringify(text).replace(
    /[^\x20-\x7e]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
