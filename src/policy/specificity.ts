import { compareAccess, compareLayers, type Rule } from "./rule.ts";

/**
 * Which of two rules for the same resolved path holds: exact over glob, then exclude over ro over rw, then the later
 * layer. (That a longer path beats a shorter one needs no comparison: its mount lies on top.)
 */
function compare(a: Rule, b: Rule): number {
  return Number(!a.glob) - Number(!b.glob) || compareAccess(b.access, a.access) || compareLayers(a.layer, b.layer);
}

/** The rule that holds, and those it beat. Among equals the one given last is named. A guard can only lower access. */
export function strongest(rules: readonly [Rule, ...Rule[]]): {
  readonly rule: Rule;
  readonly beaten: readonly Rule[];
} {
  const granted = best(rules.filter(({ guard }) => !guard));
  const guarded = best(rules.filter(({ guard }) => guard));
  const lowers = granted === null || (guarded !== null && compareAccess(guarded.access, granted.access) < 0);
  const rule = (lowers ? guarded : granted) as Rule;
  return { rule, beaten: rules.filter((other) => other !== rule) };
}

function best(rules: readonly Rule[]): Rule | null {
  return rules.reduce<Rule | null>((held, next) => (held === null || compare(next, held) >= 0 ? next : held), null);
}
