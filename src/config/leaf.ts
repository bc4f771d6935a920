import { isTable } from "./display.ts";
import type { KeyEntry } from "./key-types.ts";
import { toVariable } from "./secret-reference.ts";
import type { PartialConfig } from "./types.ts";

/** What a layer says for a key, with the shorthands written out. */
export function readLeaf(layer: PartialConfig, key: KeyEntry): unknown {
  const root: Readonly<Record<string, unknown>> = { ...layer };
  if (key.section === undefined) return root[key.leaf];
  const section = key.section === "network" ? spellOutNetwork(root["network"]) : root[key.section];
  const value = (section as Readonly<Record<string, unknown>> | undefined)?.[key.leaf];
  return key.name === "environment.set" && isTable(value) ? spellOutVariables(value) : value;
}

/** Puts a value where its key belongs, making the section when it is the first of it. */
export function writeLeaf(target: Record<string, unknown>, key: KeyEntry, value: unknown): void {
  if (key.section === undefined) {
    target[key.leaf] = value;
    return;
  }
  target[key.section] ??= {};
  (target[key.section] as Record<string, unknown>)[key.leaf] = value;
}

/** `network = true` and `network = false` are short for a mode. */
export function spellOutNetwork(network: unknown): unknown {
  return typeof network === "boolean" ? { mode: network ? "open" : "none" } : network;
}

function spellOutVariables(set: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const variables: Record<string, unknown> = Object.create(null);
  for (const [name, value] of Object.entries(set)) {
    variables[name] = typeof value === "string" ? toVariable(value) : value;
  }
  return variables;
}
