import { isWithin } from "../policy/paths.ts";
import type { PathDecision, Plan } from "./plan.ts";

/** Whether a rule makes a path writable, were it not for Podbot's own protection. */
export function isGranted(plan: Plan, path: string): boolean {
  const rules = plan.paths.filter((decision) => decision.layer !== "podbot" && isWithin(path, decision.path));
  return rules.at(-1)?.access === "rw";
}

/** The decision that holds for a path: the deepest at or above it. Null where no rule speaks of it. */
export function decisionFor(plan: Plan, path: string): PathDecision | null {
  const decisions = plan.paths.filter((decision) => isWithin(path, decision.path));
  // One that was not mounted changed nothing, so what was mounted above it holds.
  return decisions.findLast(({ mounted }) => mounted) ?? decisions.at(-1) ?? null;
}
