import { PolicyError } from "../errors.ts";
import { expandPath, type Standpoint } from "./paths.ts";

/** What happens when a wrapped command is started inside. */
export type CommandRule =
  | { readonly kind: "deny"; readonly name: string }
  | { readonly kind: "preset"; readonly name: string; readonly preset: "@git" }
  | { readonly kind: "script"; readonly name: string; readonly script: string };

/**
 * Copies of a program that are not on PATH but that the program itself, or anyone who looks, finds.
 * Debian ships git twice.
 */
const copies: Readonly<Record<string, readonly string[]>> = {
  git: ["/usr/lib/git-core/git", "/usr/libexec/git-core/git", "/usr/local/libexec/git-core/git"],
};

export function knownCopies(name: string): readonly string[] {
  return Object.hasOwn(copies, name) ? (copies[name] as readonly string[]) : [];
}

/** `true` leaves the command as it is; the rest of the values say what stands in for it. */
export function parseCommandRules(
  commands: Readonly<Record<string, boolean | string>>,
  from: Standpoint,
): readonly CommandRule[] {
  return Object.entries(commands)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([name, value]) => parseCommandRule(name, value, from));
}

function parseCommandRule(name: string, value: boolean | string, from: Standpoint): readonly CommandRule[] {
  if (name === "" || name === "." || name === ".." || /[/\0]/.test(name)) {
    throw invalid(name, "it is not the name of a command", "Name the command as it is typed, without a directory.");
  }
  if (value === true) return [];
  if (value === false) return [{ kind: "deny", name }];
  if (!value.startsWith("@")) return [{ kind: "script", name, script: expandPath(value, from) }];
  if (value === "@git" && name === "git") return [{ kind: "preset", name, preset: "@git" }];
  throw invalid(name, `the preset ${value} is not for it`, 'The only command preset is git = "@git".');
}

function invalid(name: string, why: string, hint: string): PolicyError {
  return new PolicyError("COMMAND_RULE_INVALID", `The rule for the command ${JSON.stringify(name)} is wrong: ${why}.`, {
    hint,
    details: { command: name },
  });
}
