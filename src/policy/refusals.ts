import { canonicalHost, isAddress } from "./hosts.ts";
import { type Asked, domainOf, mendable } from "./suggest.ts";
import { quoted, short, times } from "./suggest-remarks.ts";

const mostLines = 5;

interface Refused {
  readonly shown: string;
  /** Null where no flag would help. */
  flag: string | null;
  /** Whether other paths or methods are allowed there: a flag would open all of them. */
  isPart: boolean;
  reason: string | undefined;
  count: number;
}

/** What the owner should know of refusals when a run is over: a few lines, those that came most often first. */
export function summarizeRefusals(entries: Iterable<Asked>): readonly string[] {
  const places = new Map<string, Refused>();
  for (const entry of entries) if (entry.verdict === "refused" && entry.kind !== "dns") count(places, entry);
  const all = [...places.values()].sort((one, other) => other.count - one.count);
  const untold = all.length - mostLines;
  return [
    ...all.slice(0, mostLines).map(lineOf),
    ...(untold > 0 ? [`Refused as well: ${untold} more. \`podbot audit\` shows all.`] : []),
  ];
}

function count(places: Map<string, Refused>, { host, port, reason }: Asked): void {
  const name = canonicalHost(host);
  const shown = name === null ? quoted(short(`${host}:${port}`)) : domainOf({ host: name, port });
  const known = places.get(shown) ?? { shown, flag: null, isPart: false, reason, count: 0 };
  known.count += 1;
  known.isPart ||= reason === "path" || reason === "method";
  if (name !== null && !isAddress(name) && mendable.includes(reason)) known.flag = `--allow ${shown}`;
  places.set(shown, known);
}

function lineOf({ shown, flag, isPart, reason, count: often }: Refused): string {
  if (isPart) return `Refused ${times(often)}: ${shown}; \`podbot policy suggest\` shows the rule that would allow it.`;
  const way = flag === null ? (whys[reason ?? ""] ?? "no flag is offered for that") : `${flag} would allow it`;
  return `Refused ${times(often)}: ${shown}; ${way}.`;
}

const whys: Readonly<Record<string, string>> = {
  denied: "a rule denies it",
  address: "it leads to a private address, which only a rule with local = true allows",
};
