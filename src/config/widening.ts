import { ConfigError } from "../errors.ts";
import { isSecretKey, showName, showPath, showProxy, showValue } from "./display.ts";
import type { KeyEntry } from "./key-types.ts";
import { keys } from "./keys.ts";
import { readLeaf } from "./leaf.ts";
import type { Config, NetworkRuleSetting, PartialConfig, VariableValue, Widening } from "./types.ts";
import { mergeRule } from "./value-type.ts";

/**
 * What a project file asks for beyond `below`, the merge of the layers under it. Paths are not judged here: whether a
 * rule widens depends on where they lead, which only the plan knows.
 */
export function findWidenings(project: PartialConfig, below: Config): readonly Widening[] {
  return keys.flatMap((key) => {
    const { widens } = key;
    if (typeof widens === "string") return [];
    return partsOf(key, readLeaf(project, key), readLeaf(below, key))
      .filter((part) => widens.when(part.value, part.below))
      .map((part) => ({ key: part.key, value: printable(key, part.value), why: widens.why }));
  });
}

/** The error that an untrusted project file ends in. */
export function untrustedError(file: string, widenings: readonly Widening[]): ConfigError {
  const lines = widenings.map(({ key, value, why }) => {
    const shown = isSecretKey(key) && value === hidden ? "" : ` = ${showValue(value)}`;
    return `  ${key}${shown}: ${why}`;
  });
  return new ConfigError(
    "CONFIG_UNTRUSTED",
    [`${showPath(file)} asks for more than your own configuration grants, and you have not trusted it:`, ...lines].join(
      "\n",
    ),
    {
      hint: "Review it, then run `podbot trust` in this directory; or remove these lines from it.",
      details: { file, widenings },
    },
  );
}

interface Part {
  readonly key: string;
  readonly value: unknown;
  readonly below: unknown;
}

/** What is judged one by one: a scalar, each element of a list, each entry of a record. */
function partsOf(key: KeyEntry, value: unknown, below: unknown): readonly Part[] {
  if (value === undefined) return [];
  switch (mergeRule(key.type)) {
    case "last":
      return [{ key: key.name, value, below }];
    case "concatenate":
      // Adding what is there already still counts: between the two, another element may have taken it away.
      return (value as readonly unknown[]).map((element) => ({ key: key.name, value: element, below: undefined }));
    case "per-name":
      return Object.entries(value as object).map(([name, entry]) => ({
        key: `${key.name}.${showName(name)}`,
        value: entry,
        below: (below as Readonly<Record<string, unknown>>)[name],
      }));
  }
}

const hidden = "(not shown)";

/** References are shown, since their names are what the owner must judge; literal values and sources are not. */
function printable(key: KeyEntry, value: unknown): unknown {
  if (key.type.kind === "rules") return (value as NetworkRuleSetting).host;
  if (!isSecretKey(key.name)) return value;
  if (key.name === "network.upstream_proxy") return showProxy(value as string) ?? hidden;
  const variable = value as Partial<VariableValue>;
  if (variable.kind !== "secret") return hidden;
  return `!secret${variable.optional ? "?" : ""} ${variable.name}`;
}
