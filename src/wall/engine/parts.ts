import { type ContainerPlan, homeInside } from "../../plan/container.ts";
import type { Operation, Plan } from "../../plan/plan.ts";

/** Something of the host's that is seen in the container. */
export type Bind = Extract<Operation, { kind: "bind" }>;

/** What a container is asked for, whichever engine makes it. */
export interface ContainerParts {
  readonly plan: Plan;
  readonly container: ContainerPlan;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The first program and its arguments. */
  readonly first: readonly string[];
  readonly binds: readonly Bind[];
  /** A system call filter in place of the engine's own. */
  readonly seccompProfile: string | null;
}

/** Where the root is read-only, these are in memory, gone afterwards. */
export const temporary: Readonly<Record<string, string>> = {
  "/tmp": "mode=1777",
  "/var/tmp": "mode=1777",
  "/run": "mode=755",
};

/** And these keep what is written, as long as the container lives. */
function writablePlaces({ plan, container }: Pick<ContainerParts, "plan" | "container">): readonly string[] {
  if (!container.readOnlyRoot) return [];
  return [homeInside(container), ...(plan.workspace === "mounted" ? [] : [plan.directory])];
}

/**
 * For root, as anonymous volumes, which have what the image has there. They are root's, so that anybody else gets
 * directories of the session's own instead.
 */
export function volumesOf(parts: Pick<ContainerParts, "plan" | "container">): readonly string[] {
  return parts.container.user.uid === 0 ? writablePlaces(parts) : [];
}

export function ownPlaces(parts: Pick<ContainerParts, "plan" | "container">): readonly string[] {
  return parts.container.user.uid === 0 ? [] : writablePlaces(parts);
}
