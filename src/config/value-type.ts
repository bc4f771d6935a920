/** The kinds of value that a key can hold. Validation, merging, the environment, the JSON Schema and the docs all read this. */
export type ValueType =
  | { readonly kind: "text" }
  | { readonly kind: "integer"; readonly min: number }
  | { readonly kind: "number"; readonly min: number; readonly max: number }
  | { readonly kind: "flag" }
  | ChoiceType<string>
  | { readonly kind: "list"; readonly of: ListItem }
  | { readonly kind: "record"; readonly of: RecordEntry };

export interface ChoiceType<V extends string> {
  readonly kind: "choice";
  readonly of: readonly V[];
  /** Values that a later version will have. They are refused, but with a sentence that says so. */
  readonly later?: readonly string[];
}

/** `argument` may be empty, as arguments of programs may; `variable` is the name of an environment variable, or a pattern with `*`. */
export type ListItem = "text" | "argument" | "variable";

export type RecordEntry = "command" | "variable" | "secret";

export type MergeRule = "last" | "concatenate" | "per-name";

/** How the layers of a key become one value. It follows from the type, so no key can disagree with its own shape. */
export function mergeRule(type: ValueType): MergeRule {
  if (type.kind === "list") return "concatenate";
  return type.kind === "record" ? "per-name" : "last";
}
