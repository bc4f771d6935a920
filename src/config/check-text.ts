import { looksLikeReference } from "./secret-reference.ts";

/** Called for everything that is wrong. `key` names the part of the value that is meant. */
export type Report = (key: string, value: unknown, wrong: string, wayOut: string) => void;

/** Text that is not blank. */
export function checkText(key: string, value: unknown, report: Report): string | undefined {
  const text = checkArgument(key, value, report);
  if (text === undefined || text.trim() !== "") return text;
  report(key, value, "is blank", "give it a value or remove it");
  return undefined;
}

/** Text that may be blank, as an argument of a program may. */
export function checkArgument(key: string, value: unknown, report: Report): string | undefined {
  if (typeof value !== "string" || !looksLikeReference(value)) return checkLiteral(key, value, report);
  report(
    key,
    value,
    "is a reference to a secret, which only a value of environment.set can be",
    "write the value itself",
  );
  return undefined;
}

/** Text of any kind. What no path, argument or variable can hold is refused here, once, for all of them. */
export function checkLiteral(key: string, value: unknown, report: Report): string | undefined {
  if (typeof value !== "string") report(key, value, "is not text", "put it in quotes");
  else if (/[\0\p{Surrogate}]/u.test(value)) {
    report(key, value, "holds a character that no path, argument or variable can hold", "remove it");
  } else return value;
  return undefined;
}

/** The name of an environment variable; with `pattern`, a `*` at its end stands for any letters. */
export function checkVariableName(
  key: string,
  value: unknown,
  report: Report,
  { pattern }: { readonly pattern: boolean },
): string | undefined {
  const text = checkText(key, value, report);
  if (text === undefined || (pattern ? /^[^=*\s]*\*?$/ : /^[^=*\s]+$/).test(text)) return text;
  report(
    key,
    value,
    "is not the name of a variable",
    `write one name, without = and blanks${pattern ? "; * may end it" : " and *"}`,
  );
  return undefined;
}
