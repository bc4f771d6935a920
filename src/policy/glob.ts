import { PolicyError } from "../errors.ts";
import { expandPath, type Standpoint } from "./paths.ts";

/** `*`, `?` and `[…]` match within one segment; a segment `**` stands for any number of directories. */
export function isGlob(pattern: string): boolean {
  return /[*?[]/.test(pattern);
}

/** What a written path stands for: a plain path or a glob. Only what was written is one, never where it is read from. */
export function toPattern(written: string, from: Standpoint): { readonly pattern: string; readonly glob?: true } {
  if (!isGlob(written)) return { pattern: expandPath(written, from) };
  const pattern = expandPath(written, { home: spellOut(from.home), cwd: spellOut(from.cwd) });
  checkGlob(pattern);
  return { pattern, glob: true };
}

function spellOut(path: string): string {
  return path.replace(/[*?[]/g, "[$&]");
}

/** The regular expression of one segment. As in a shell, a leading dot must be written to be matched. */
export function segmentMatcher(segment: string, pattern: string): RegExp {
  let source = /^[*?[]/.test(segment) ? "(?!\\.)" : "";
  for (let at = 0; at < segment.length; at++) {
    const character = segment[at] as string;
    if (character === "*") source += ".*";
    else if (character === "?") source += ".";
    else if (character === "[") {
      const end = segment.indexOf("]", at + 2);
      if (end < 0) throw invalid(pattern, "a `[` is never closed");
      source += characterClass(segment.slice(at + 1, end), pattern);
      at = end;
    } else source += character.replace(/[\\^$.|+(){}\]]/, "\\$&");
  }
  return new RegExp(`^${source}$`, "su");
}

function characterClass(body: string, pattern: string): string {
  const negated = /^[!^]/.test(body);
  const inner = (negated ? body.slice(1) : body).replace(/[\\\]^[]/g, "\\$&");
  if (inner === "") throw invalid(pattern, "a `[]` holds nothing");
  for (const range of inner.matchAll(/(.)-(.)/gsu)) {
    if ((range[1] as string) > (range[2] as string)) throw invalid(pattern, `the range ${range[0]} runs backwards`);
  }
  return `[${negated ? "^" : ""}${inner}]`;
}

/** Throws where the pattern could never be expanded, so that the mistake is found before anything is read. */
function checkGlob(pattern: string): void {
  for (const segment of pattern.split("/")) {
    if (segment !== "**" && isGlob(segment)) segmentMatcher(segment, pattern);
  }
}

function invalid(pattern: string, why: string): PolicyError {
  return new PolicyError("PATTERN_INVALID", `The pattern ${JSON.stringify(pattern)} is not a valid glob: ${why}.`, {
    hint: "Use *, ? and [a-z] within a segment and ** for any directories; write [[] for a plain bracket.",
    details: { pattern },
  });
}
