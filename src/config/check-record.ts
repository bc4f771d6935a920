import { checkSecret } from "./check-secret.ts";
import { checkArgument, checkLiteral, checkText, type Report } from "./check-text.ts";
import { isTable, showName } from "./display.ts";
import { looksLikeReference, parseReference, secretName } from "./secret-reference.ts";
import type { RecordEntry } from "./value-type.ts";

interface Entry {
  readonly name: string;
  /** As reports name it. */
  readonly key: string;
  readonly value: unknown;
  /** The layer was made by a program, which may give values in the form that `Config` has. */
  readonly typed: boolean;
}

/** Holds every entry of a table to the rules of its record. Entries that are right are kept, the others reported. */
export function checkRecord(
  of: RecordEntry,
  key: string,
  table: Readonly<Record<string, unknown>>,
  report: Report,
  typed: boolean,
): Record<string, unknown> {
  const record: Record<string, unknown> = Object.create(null);
  for (const [name, value] of Object.entries(table)) {
    const entry = { name, key: `${key}.${showName(name)}`, value, typed };
    if (!names[of].grammar.test(name)) {
      report(entry.key, value, `is not a name that ${key} can hold`, names[of].wayOut);
      continue;
    }
    const checked = checkEntry[of](entry, report);
    if (checked !== undefined) record[name] = checked;
  }
  return record;
}

/** What the entries of each record may be called. */
export const names: Readonly<Record<RecordEntry, { readonly grammar: RegExp; readonly wayOut: string }>> = {
  // `.` and `..` would be directories where the wrappers lie.
  command: {
    grammar: /^(?!\.{1,2}$|!secret)(?=[\s\S]*\S)[^/\0]+$/,
    wayOut: "use the bare name of a command, without /",
  },
  variable: { grammar: /^(?!!secret)[^=*\s\0]+$/, wayOut: "use the name of one variable, without = and blanks and *" },
  secret: { grammar: secretName, wayOut: "use letters, digits, and _ . -" },
  address: { grammar: /^[A-Za-z0-9_.-]+$/, wayOut: "use the name of one host" },
  permission: { grammar: /^[a-z][a-z_]*$/, wayOut: "use GitHub's own name, such as pull_requests" },
};

export const levels: readonly unknown[] = ["none", "read", "write"];

const checkEntry: Readonly<Record<RecordEntry, (entry: Entry, report: Report) => unknown>> = {
  command: checkCommand,
  variable: checkVariable,
  secret: ({ key, value }, report) => checkSecret(key, value, report),
  address: ({ key, value }, report) => checkText(key, value, report),
  permission: checkPermission,
};

function checkCommand({ name, key, value }: Entry, report: Report): unknown {
  if (typeof value === "boolean") return value;
  if (typeof value !== "string") {
    report(key, value, "is not a rule for a command", 'write true, false, "@git" or the path of a script');
    return undefined;
  }
  const text = checkText(key, value, report);
  if (text === undefined || !text.startsWith("@") || (text === "@git" && name === "git")) return text;
  if (text === "@git") report(key, value, "is a preset for the command git only", "write a script for this command");
  else
    report(key, value, "is not a preset for commands", "the only one is @git; the path of a script may begin with ./");
  return undefined;
}

function checkPermission({ key, value }: Entry, report: Report): unknown {
  if (levels.includes(value)) return value;
  report(key, value, `is not one of ${levels.join(", ")}`, "choose one of these");
  return undefined;
}

function checkVariable({ key, value, typed }: Entry, report: Report): unknown {
  if (typed && isTable(value)) return checkTypedVariable(key, value, report);
  if (typeof value !== "string" || !looksLikeReference(value)) return literal(checkArgument(key, value, report));
  const reference = parseReference(value);
  if (reference === undefined)
    report(key, value, "is not a well-formed reference", "write !secret NAME or !secret? NAME");
  return reference;
}

/** `{ kind: "literal", value }` keeps its text even when that looks like a reference: its author may not be the owner. */
function checkTypedVariable(key: string, value: Readonly<Record<string, unknown>>, report: Report): unknown {
  if (value["kind"] === "literal") return literal(checkLiteral(key, value["value"], report));
  const reference = parseReference(`!secret${value["optional"] === true ? "?" : ""} ${value["name"]}`);
  if (value["kind"] === "secret" && reference !== undefined) return reference;
  report(
    key,
    value,
    "is neither a literal nor a secret",
    'give { kind: "literal", value } or { kind: "secret", name, optional }',
  );
  return undefined;
}

function literal(value: string | undefined): unknown {
  return value === undefined ? undefined : { kind: "literal", value };
}
