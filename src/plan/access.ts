import { isWithin } from "../policy/paths.ts";
import type { PathDecision, Plan } from "./plan.ts";

/** The decision that holds for a path: the deepest at or above it. Null where no rule speaks of it. */
export function decisionFor(plan: Plan, path: string): PathDecision | null {
  return plan.paths.filter((decision) => isWithin(path, decision.path)).at(-1) ?? null;
}
