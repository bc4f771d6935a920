import type { SuggestedRule, Suggestion, Tally } from "./suggest.ts";
import { quoted, times } from "./suggest-remarks.ts";

/** A suggestion as it would stand in a file of configuration. */
export function toToml({ domains, rules, remarks }: Suggestion): string {
  const nothing = domains.length === 0 && rules.length === 0;
  const listed = domains.map(({ domain, ...tally }) => `  ${quoted(domain)}, # ${tallyWords(tally)}`);
  const parts = [
    ...(nothing ? ["# Nothing was asked for that a rule could allow."] : []),
    ...(listed.length === 0 ? [] : [["[network]", "domains = [", ...listed, "]"].join("\n")]),
    ...rules.map(ruleText),
    ...(remarks.length === 0 ? [] : [remarks.map((remark) => `# ${remark}`).join("\n")]),
  ];
  return `${parts.join("\n\n")}\n`;
}

function ruleText({ host, ports, methods, paths, ...tally }: SuggestedRule): string {
  const port = ports.length === 1 ? `port = ${ports[0]}` : `ports = [${ports.join(", ")}]`;
  return [
    `# ${tallyWords(tally)}`,
    "[[network.rules]]",
    `host = ${quoted(host)}`,
    port,
    `methods = [${methods.map(quoted).join(", ")}]`,
    `paths = [${paths.map(quoted).join(", ")}]`,
  ].join("\n");
}

function tallyWords({ asked, refused }: Tally): string {
  const often = `asked for ${times(asked)}`;
  if (refused === 0) return often;
  return refused === asked ? `${often}, and refused` : `${often}, refused ${times(refused)}`;
}
