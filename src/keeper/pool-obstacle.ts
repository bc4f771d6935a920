import type { Plan } from "../plan/plan.ts";

/** Why no box can be prepared for a plan; null where one can. */
export function poolObstacle({ plan }: { readonly plan: Plan }): string | null {
  if (plan.wall !== "engine") return "boxes are prepared by a container engine only";
  if (plan.workspace === "mounted") {
    return `the plan mounts ${plan.cwd}, and nothing can be mounted into a box that is already there`;
  }
  if (plan.clone !== null) return `the plan clones ${plan.clone.repository}, and what was cloned before would be old`;
  return null;
}
