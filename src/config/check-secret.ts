import { type CheckField, checkTable, texts } from "./check-table.ts";
import { checkArgument, checkText, checkVariableName, type Report } from "./check-text.ts";
import { isTable } from "./display.ts";

const checkCommand: CheckField = (key, value, report) => {
  if (!Array.isArray(value) || value.length === 0) {
    report(key, value, "is not a list of words", 'write the program and its arguments: ["pass", "show", "x"]');
    return undefined;
  }
  const words = value.map((word, index) => (index === 0 ? checkText : checkArgument)(`${key}[${index}]`, word, report));
  return words.includes(undefined) ? undefined : words;
};

/** `service/account`, by which desktops keep passwords. */
export const keyringEntry = /^(?!!secret)[^\s/\0][^/\0]*\/[^\s\0][^\0]*$/;

const checkKeyring: CheckField = (key, value, report) => {
  const text = checkText(key, value, report);
  if (text === undefined || keyringEntry.test(text)) return text;
  report(key, value, "is not an entry of a keyring", 'write "service/account"');
  return undefined;
};

const sources = {
  env: (key: string, value: unknown, report: Report) => checkVariableName(key, value, report, { pattern: false }),
  file: checkText,
  command: checkCommand,
  keyring: checkKeyring,
} as const;

const scope = { hosts: texts, headers: texts, paths: texts } as const;

const sourceNames = Object.keys(sources);

/** Where a secret comes from, and where it belongs. Its values are in no report: people put secrets there. */
export function checkSecret(key: string, value: unknown, report: Report): unknown {
  if (!isTable(value)) {
    report(key, value, "does not say where the secret comes from", 'write a table with env = "NAME" or file = "PATH"');
    return undefined;
  }
  const checked = checkTable({ ...sources, ...scope }, key, value, report);
  if (sourceNames.filter((name) => name in value).length !== 1) {
    report(key, value, "must have exactly one of env, file, command and keyring", "keep the one that it comes from");
    return undefined;
  }
  const loose = ["headers", "paths"].filter((name) => name in value);
  if (loose.length > 0 && !("hosts" in value)) {
    report(key, value, `has ${loose.join(" and ")} but no hosts`, "say to which hosts it may be sent, or remove it");
  }
  return checked;
}
