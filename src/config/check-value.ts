import { checkRecord } from "./check-record.ts";
import { checkNetworkRule } from "./check-rule.ts";
import { checkArgument, checkText, checkVariableName, type Report } from "./check-text.ts";
import { isTable } from "./display.ts";
import { nearestName } from "./nearest.ts";
import type { ListItem, ValueType } from "./value-type.ts";

/**
 * Holds a value to its type and returns it in the form that `Config` has. What is wrong is reported and left out: an
 * element of a list, an entry of a record, or the whole value.
 */
export function checkValue(type: ValueType, key: string, value: unknown, report: Report, typed: boolean): unknown {
  const refuse = (wrong: string, wayOut: string): undefined => {
    report(key, value, wrong, wayOut);
    return undefined;
  };
  switch (type.kind) {
    case "text":
      return checkText(key, value, report);
    case "flag":
      return typeof value === "boolean"
        ? value
        : refuse("is not true or false", "write one of the two, without quotes");
    case "integer":
      return Number.isSafeInteger(value) && (value as number) >= type.min
        ? value
        : refuse(`is not a whole number from ${type.min} up`, "write the digits, without quotes");
    case "number":
      return typeof value === "number" && value >= type.min && value <= type.max
        ? value
        : refuse(`is not a number from ${type.min} to ${type.max}`, "write the digits, without quotes");
    case "choice":
      if (type.of.includes(value as string)) return value;
      return refuse(`is not one of ${type.of.join(", ")}`, suggestChoice(value, type.of));
    case "list":
      if (!Array.isArray(value)) return refuse("is not a list", 'write it as ["…"]');
      return value
        .map((item, index) => checkItem(type.of, `${key}[${index}]`, item, report))
        .filter((item) => item !== undefined);
    case "rules":
      if (!Array.isArray(value)) return refuse("is not a list", "write it as [{ … }]");
      return value
        .map((item, index) => checkNetworkRule(`${key}[${index}]`, item, report))
        .filter((item) => item !== undefined);
    case "record":
      if (!isTable(value)) return refuse("is not a table", "give it names and values of its own");
      return checkRecord(type.of, key, value, report, typed);
  }
}

function checkItem(of: ListItem, key: string, value: unknown, report: Report): string | undefined {
  switch (of) {
    case "argument":
      return checkArgument(key, value, report);
    case "text":
      return checkText(key, value, report);
    case "variable":
      return checkVariableName(key, value, report, { pattern: true });
  }
}

function suggestChoice(value: unknown, choices: readonly string[]): string {
  const near = typeof value === "string" ? nearestName(value, choices) : undefined;
  return near === undefined ? "choose one of these" : `did you mean "${near}"?`;
}
