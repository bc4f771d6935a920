import type { VariableValue } from "./types.ts";

/** What a secret may be called: also the grammar of the name in a reference, so that every secret can be referred to. */
export const secretName = /^[A-Za-z0-9_.-]+$/;

const reference = /^!secret(\??)[ \t]+([A-Za-z0-9_.-]+)[ \t]*$/;

/** Whether the text was meant as a reference, well-formed or not. A misspelt one must never become a literal. */
export function looksLikeReference(text: string): boolean {
  return text.startsWith("!secret");
}

/** Reads `!secret NAME` and `!secret? NAME`. */
export function parseReference(text: string): VariableValue | undefined {
  const match = reference.exec(text);
  if (match === null) return undefined;
  return { kind: "secret", name: match[2] as string, optional: match[1] === "?" };
}

/** The value of a variable as a file writes it. */
export function toVariable(text: string): VariableValue {
  return parseReference(text) ?? { kind: "literal", value: text };
}
