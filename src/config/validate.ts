import { checkValue } from "./check-value.ts";
import { isSecretKey, isTable, showName, showValue } from "./display.ts";
import type { KeyEntry } from "./key-types.ts";
import { keys } from "./keys.ts";
import { spellOutNetwork, writeLeaf } from "./leaf.ts";
import { nearestName } from "./nearest.ts";
import { mostListed, type Problem } from "./problem.ts";
import type { PartialConfig } from "./types.ts";

export interface ValidateOptions {
  /** As problems name it: a file's path, or another description of the layer. */
  readonly source: string;
  /** How the layer's own language calls a key, where that is not the key's name. */
  readonly nameOf?: (key: KeyEntry) => string;
  /** The layer was made by a program, which may give values in the form that `Config` has. */
  readonly typed?: boolean;
}

export interface Validated {
  /** What was right, with shorthands written out. */
  readonly value: PartialConfig;
  readonly problems: readonly Problem[];
}

/** Holds a layer of unknown content to the table of keys. Never throws: what is wrong is in `problems`. */
export function validateLayer(input: Readonly<Record<string, unknown>>, options: ValidateOptions): Validated {
  const { source, nameOf, typed = false } = options;
  const problems: Problem[] = [];
  const value: Record<string, unknown> = {};

  const check = (key: KeyEntry, said: unknown) => {
    if (said === undefined) return;
    const report = (path: string, part: unknown, wrong: string, wayOut: string) => {
      const shown = isSecretKey(key.name) ? {} : { shown: showValue(part) };
      problems.push({ kind: "value", source, key: nameOf?.(key) ?? path, field: key.name, ...shown, wrong, wayOut });
    };
    const checked = checkValue(key.type, key.name, said, report, typed);
    if (checked !== undefined) writeLeaf(value, key, checked);
  };
  const refuse: Refuse = (key, wrong, wayOut) => {
    // Looking for similar names takes time, which must not grow with a file of nothing but mistakes.
    const listed = problems.length < mostListed;
    problems.push({ kind: "value", source, key, wrong, wayOut: listed ? wayOut() : "" });
  };

  for (const [name, said] of Object.entries(input)) {
    // Editors find the JSON Schema by it.
    if (name === "$schema") continue;
    const root = keys.find((key) => key.section === undefined && key.leaf === name);
    const section = keys.filter((key) => key.section === name);
    if (root !== undefined) check(root, said);
    else if (section.length === 0) refuse(showName(name), "is not a known key", () => suggestKey(name, undefined));
    else checkSection(name, section, said, check, refuse);
  }
  return { value: value as PartialConfig, problems };
}

/** Never takes the value: what stands below a key that we do not know, or in place of a section, may be a secret. */
type Refuse = (key: string, wrong: string, wayOut: () => string) => void;

function checkSection(
  section: string,
  members: readonly KeyEntry[],
  said: unknown,
  check: (key: KeyEntry, said: unknown) => void,
  refuse: Refuse,
): void {
  const table = section === "network" ? spellOutNetwork(said) : said;
  if (table === undefined) return;
  if (!isTable(table)) {
    const wayOut =
      section === "network" ? "write true, false, or network.mode" : `give it keys, such as ${members[0]?.name}`;
    refuse(section, "is not a table", () => wayOut);
    return;
  }
  for (const [name, value] of Object.entries(table)) {
    const key = members.find((member) => member.leaf === name);
    if (key !== undefined) check(key, value);
    else refuse(`${section}.${showName(name)}`, "is not a known key", () => suggestKey(name, section));
  }
}

/** The key that was probably meant: the same name in another place, or a similar name in the same place. */
function suggestKey(name: string, section: string | undefined): string {
  const elsewhere = keys.find((key) => key.leaf === name || key.name === name);
  if (elsewhere !== undefined) return `did you mean ${elsewhere.name}?`;
  const here =
    section === undefined ? topLevelNames() : keys.filter((key) => key.section === section).map((key) => key.leaf);
  const near = nearestName(name, here);
  if (near !== undefined) return `did you mean ${section === undefined ? near : `${section}.${near}`}?`;
  return `the keys here are ${here.join(", ")}`;
}

function topLevelNames(): readonly string[] {
  return [...new Set(keys.map((key) => key.section ?? key.leaf))];
}
