import { checkText, type Report } from "./check-text.ts";
import { showName } from "./display.ts";
import { nearestName } from "./nearest.ts";

/** Holds one field of a table to its type; what is wrong is reported, and undefined. */
export type CheckField = (key: string, value: unknown, report: Report) => unknown;

/**
 * A table with fields of its own, all of them known: a misspelt one that were passed over would make a rule wider than
 * it was written. Undefined where anything is wrong.
 */
export function checkTable(
  fields: Readonly<Record<string, CheckField>>,
  key: string,
  table: Readonly<Record<string, unknown>>,
  report: Report,
): Record<string, unknown> | undefined {
  const checked: Record<string, unknown> = {};
  let isRight = true;
  for (const [name, value] of Object.entries(table)) {
    const check = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (check === undefined) {
      const near = nearestName(name, Object.keys(fields));
      const wayOut =
        near === undefined ? `the keys here are ${Object.keys(fields).join(", ")}` : `did you mean ${near}?`;
      report(`${key}.${showName(name)}`, value, "is not a known key", wayOut);
    }
    const field = check?.(`${key}.${name}`, value, report);
    if (field === undefined) isRight = false;
    else checked[name] = field;
  }
  return isRight ? checked : undefined;
}

/** A list that says something, all of its elements right. */
export function listOf(check: CheckField): CheckField {
  return (key, value, report) => {
    if (!Array.isArray(value) || value.length === 0) {
      report(key, value, "is not a list with something in it", "write it as […], or leave it out");
      return undefined;
    }
    const items = value.map((item, index) => check(`${key}[${index}]`, item, report));
    return items.includes(undefined) ? undefined : items;
  };
}

export const texts = listOf(checkText);

export const checkFlag: CheckField = (key, value, report) => {
  if (typeof value === "boolean") return value;
  report(key, value, "is not true or false", "write one of the two, without quotes");
  return undefined;
};

export const checkPort: CheckField = (key, value, report) => {
  if (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= 65_535) return value;
  report(key, value, "is not a port", "write a whole number from 1 to 65535, without quotes");
  return undefined;
};
