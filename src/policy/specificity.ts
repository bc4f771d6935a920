import { isGlob } from "./glob.ts";
import { compareAccess, compareLayers, type Rule } from "./rule.ts";

/**
 * Which of two rules for the same resolved path holds: exact over glob, then exclude over ro over rw, then the later
 * layer. (That a longer path beats a shorter one needs no comparison: its mount lies on top.)
 * Podbot's own protection stands outside this order.
 */
function compare(a: Rule, b: Rule): number {
  return (
    Number(a.layer === "podbot") - Number(b.layer === "podbot") ||
    Number(!isGlob(a.pattern)) - Number(!isGlob(b.pattern)) ||
    compareAccess(b.access, a.access) ||
    compareLayers(a.layer, b.layer)
  );
}

/** The rule that holds, and those it beat. Among equals the one given last is named. */
export function strongest(rules: readonly [Rule, ...Rule[]]): {
  readonly rule: Rule;
  readonly beaten: readonly Rule[];
} {
  const rule = rules.reduce((best, next) => (compare(next, best) >= 0 ? next : best));
  return { rule, beaten: rules.filter((other) => other !== rule) };
}
