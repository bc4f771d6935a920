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

/** A path as a pattern that stands for that path alone. */
export function spellOut(path: string): string {
  return path.replace(/[*?[]/g, "[$&]");
}

/** One step of a pattern: a star, or what a single part must be. */
export type Step = "star" | ((part: string) => boolean);

/** Matches one segment. As in a shell, a leading dot must be written to be matched. */
export function segmentMatcher(segment: string, pattern: string): { test(name: string): boolean } {
  const steps = readSteps(segment, pattern);
  const hides = /^[*?[]/.test(segment);
  // Nearly all names of a large tree differ in what is written out at one end, which is soon seen.
  const start = segment.slice(0, segment.search(/[*?[]/));
  const end = segment.slice(Math.max(...["*", "?", "[", "]"].map((special) => segment.lastIndexOf(special))) + 1);
  return {
    test: (name) =>
      name.startsWith(start) && name.endsWith(end) && !(hides && name.startsWith(".")) && matchSteps(steps, [...name]),
  };
}

function readSteps(segment: string, pattern: string): readonly Step[] {
  const characters = [...segment];
  const steps: Step[] = [];
  for (let at = 0; at < characters.length; at++) {
    const character = characters[at] as string;
    if (character === "*") steps.push("star");
    else if (character === "?") steps.push(() => true);
    else if (character === "[") {
      const end = characters.indexOf("]", at + 2);
      if (end < 0) throw invalid(pattern, "a `[` is never closed");
      steps.push(characterClass(characters.slice(at + 1, end).join(""), pattern));
      at = end;
    } else steps.push((found) => found === character);
  }
  return steps;
}

/** Goes back to the last star only, so that no pattern takes longer than its length times that of the parts. */
export function matchSteps(steps: readonly Step[], parts: readonly string[]): boolean {
  let at = 0;
  let step = 0;
  let star = -1;
  let resume = 0;
  while (at < parts.length) {
    const next = steps[step];
    if (next === "star") {
      star = step++;
      resume = at;
    } else if (next?.(parts[at] as string)) {
      at++;
      step++;
    } else if (star >= 0) {
      step = star + 1;
      at = ++resume;
    } else return false;
  }
  return steps.slice(step).every((left) => left === "star");
}

function characterClass(body: string, pattern: string): (character: string) => boolean {
  if (body.includes("[:")) throw invalid(pattern, "classes such as [:alpha:] are not understood");
  const negated = /^[!^]/.test(body);
  const inner = (negated ? body.slice(1) : body).replace(/[\\\]^[]/g, "\\$&");
  if (inner === "") throw invalid(pattern, "a `[]` holds nothing");
  for (const range of inner.matchAll(/(.)-(.)/gsu)) {
    if ((range[1] as string) > (range[2] as string)) throw invalid(pattern, `the range ${range[0]} runs backwards`);
  }
  const expression = new RegExp(`^[${negated ? "^" : ""}${inner}]$`, "su");
  return (character) => expression.test(character);
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
