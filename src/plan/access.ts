import { isWithin } from "../policy/paths.ts";
import type { PathDecision, Plan } from "./plan.ts";

/** Whether a rule makes a path writable, were it not for Podbot's own protection. */
export function isGranted(plan: Plan, path: string): boolean {
  const rules = plan.paths.filter((decision) => decision.layer !== "podbot" && isWithin(path, decision.path));
  return rules.at(-1)?.access === "rw";
}

/**
 * Whether somebody inside may write what lies at a path out here: by a rule, or because it is what is mounted there
 * under another name. Where that is in doubt, he may.
 */
export function isWritableInside(plan: Plan, path: string): boolean {
  if (isGranted(plan, path)) return true;
  return plan.operations.some(
    (operation) => operation.kind === "bind" && operation.access === "rw" && isWithin(path, operation.source),
  );
}

/** The decision that holds for a path: the deepest at or above it. Null where no rule speaks of it. */
export function decisionFor(plan: Plan, path: string): PathDecision | null {
  const decisions = plan.paths.filter((decision) => isWithin(path, decision.path));
  // One that was not mounted changed nothing, so what was mounted above it holds.
  return decisions.findLast(({ mounted }) => mounted) ?? decisions.at(-1) ?? null;
}
