/** The kinds of value that a key can hold. Validation, merging, the environment, the JSON Schema and the docs all read this. */
export type ValueType =
  | { readonly kind: "text" }
  | { readonly kind: "integer"; readonly min: number }
  | { readonly kind: "number"; readonly min: number; readonly max: number }
  | { readonly kind: "flag" }
  | ChoiceType<string>
  | { readonly kind: "list"; readonly of: ListItem }
  | { readonly kind: "record"; readonly of: RecordEntry }
  /** A list of tables: `network.rules`. */
  | { readonly kind: "rules" };

export interface ChoiceType<V extends string> {
  readonly kind: "choice";
  readonly of: readonly V[];
}

/** `argument` may be empty, as arguments of programs may; `variable` is the name of an environment variable, or a pattern with `*`. */
export type ListItem = "text" | "argument" | "variable";

/** `address`: where a host is dialled. */
export type RecordEntry = "command" | "variable" | "secret" | "address" | "permission";

export type MergeRule = "last" | "concatenate" | "per-name";

/** How the layers of a key become one value. It follows from the type, so no key can disagree with its own shape. */
export function mergeRule(type: ValueType): MergeRule {
  if (type.kind === "list" || type.kind === "rules") return "concatenate";
  return type.kind === "record" ? "per-name" : "last";
}
