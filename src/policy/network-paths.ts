import { matchSteps, type Step } from "./glob.ts";
import { anyPart, partStep } from "./network-globs.ts";

/** Bytes that have no business behind a percent sign: letters and digits, slashes, controls, and what hides another escape. */
const oddEscape = /%(?:2[def]|3\d|4[1-9a-f]|5[0-9acf]|6[1-9a-f]|7[0-9aef]|[01][0-9a-f]|25[0-9a-f]{2})/i;
/** Some pass over what stands around the dots, and names of hosts have others that count as one: U+3002 and its half-width form. */
const dots = /^\s*[.\u3002\uff61]{1,2}\s*(?:;|$)/;
/** What some take for a slash, a backslash or a dot, though Unicode does not say so. */
const lookalikes = /[\u2044\u2215\u29f8\u2216\u29f5]/;
/** Controls and marks that show nothing, which some pass over. */
const invisible = /[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/u;

/**
 * Whether a path can be read in more ways than one: as another path by whoever resolves dots, decodes once more, or
 * takes a backslash for a slash. Such a path is refused where paths decide, and never put right.
 */
export function isOddPath(path: string): boolean {
  if (!/^\/[\x21\x22\x24-\x3e\x40-\x5b\x5d-\x7e]*$/.test(path) || path.includes("//") || oddEscape.test(path))
    return true;
  const plain = decoded(path);
  if (plain === null || plain.split("/").some((segment) => dots.test(segment))) return true;
  // Of the letters beyond ASCII, those that become part of a path's own grammar once they are folded.
  const beyond = plain.replace(/\p{ASCII}/gu, "");
  return lookalikes.test(beyond) || invisible.test(beyond) || /[./\\;%?#]/.test(beyond.normalize("NFKC"));
}

/**
 * Whether some take it for another path: without parameters, without a space or a dot around a segment, without the
 * stream of a file, by the short name of a file, with letters in their usual form. Nothing is gained by that where only
 * allowed paths pass, but past one that is denied it would lead.
 */
export function isLoosePath(path: string): boolean {
  const plain = decoded(path) ?? path;
  if (plain.includes(";") || plain.normalize("NFKC") !== plain) return true;
  return plain.split("/").some((segment) => /^\s|[\s.\u3002\uff61]$|::|:\$|~\d/.test(segment));
}

/** One spelling for those that some servers take for the same: `ADMIN`, `admin`, and `adm\u0131n` with a dotless i. */
export function foldCase(text: string): string {
  return text.toUpperCase().toLowerCase();
}

/**
 * Tests a path that is not odd. `*` stays within a segment, `**` stands for any number of them, at the end for at least
 * one: `/api/**` is `/api/` and all below it, but not `/api`. Escapes stand for what they mean.
 */
export function pathMatcher(
  pattern: string,
  fold: (text: string) => string = (text) => text,
): (segments: readonly string[]) => boolean {
  const parts = pattern.slice(1).split("/");
  const steps = parts.flatMap((part, index): Step[] => {
    if (part !== "**") return [partStep(part, (piece) => fold(decoded(piece) ?? piece))];
    return index === parts.length - 1 ? [anyPart, "star"] : ["star"];
  });
  return (segments) => matchSteps(steps, segments);
}

/** What a matcher is given: many may look at one path. */
export function segmentsOf(path: string): readonly string[] {
  return (decoded(path) ?? path).slice(1).split("/");
}

/** Whether a star is part of it. As a pattern it would stand for others as well, so no rule can name it alone. */
export function hasStar(path: string): boolean {
  return (decoded(path) ?? path).includes("*");
}

/** False for what is odd: a secret is never sent where it is not clear what is asked for. */
export function matchesPath(pattern: string, path: string): boolean {
  return !isOddPath(path) && pathMatcher(pattern)(segmentsOf(path));
}

/** Null where the escapes are broken, or mean no text. */
function decoded(path: string): string | null {
  try {
    return decodeURIComponent(path);
  } catch {
    return null;
  }
}

/** What is wrong with a path of a rule; null where nothing is. */
export function pathMistake(pattern: string): string | null {
  if (!pattern.startsWith("/")) return "does not begin with /";
  const segments = pattern.slice(1).split("/");
  if (segments.some((segment) => segment !== "**" && segment.includes("**"))) return "has ** within a segment";
  // Two of them in a row say no more than one.
  if (/\*\*\/\*\*/.test(pattern)) return "has ** twice in a row";
  return isOddPath(pattern.replaceAll("*", "x")) ? "is spelled in a way that no request may be" : null;
}
