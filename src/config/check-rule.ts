import { checkFlag, checkPort, checkTable, listOf, texts } from "./check-table.ts";
import { checkText, type Report } from "./check-text.ts";
import { isTable } from "./display.ts";

const fields = {
  host: checkText,
  port: checkPort,
  ports: listOf(checkPort),
  path: checkText,
  paths: texts,
  methods: texts,
  deny: checkFlag,
  local: checkFlag,
} as const;

/** One of `network.rules`. What its texts mean is the policy's to judge. */
export function checkNetworkRule(key: string, value: unknown, report: Report): unknown {
  if (!isTable(value)) {
    report(key, value, "is not a table", 'write { host = "…" }');
    return undefined;
  }
  const rule = checkTable(fields, key, value, report);
  if (!("host" in value)) report(key, value, "has no host", 'say which one is meant: host = "…"');
  for (const [one, several] of [
    ["port", "ports"],
    ["path", "paths"],
  ] as const) {
    if (one in value && several in value) report(key, value, `has both ${one} and ${several}`, "keep one of the two");
  }
  return rule;
}
