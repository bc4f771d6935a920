import type { Operation, Plan } from "../../src/plan/plan.ts";
import { isWithin, parentOf } from "../../src/policy/paths.ts";
import type { Access } from "../../src/policy/rule.ts";

/** Operations that put something over a path. */
const mounting: readonly Operation["kind"][] = ["bind", "tmpfs", "proc", "dev", "mask"];

/** What the kernel shows at a path once the operations are done: whatever was mounted last at or above it. */
export function mountOver(plan: Plan, path: string): Operation | undefined {
  return plan.operations.findLast(({ kind, target }) => mounting.includes(kind) && isWithin(path, target));
}

/** What can be done inside with what the host has at a path. */
export function accessInside(plan: Plan, path: string): Access {
  const mount = mountOver(plan, path);
  return mount?.kind === "bind" && mount.source === mount.target ? mount.access : "exclude";
}

/** Whether a name can be taken away or replaced inside: its directory is writable, and it is no mount point. */
export function canBeRenamed(plan: Plan, path: string): boolean {
  const isMountPoint = plan.operations.some(({ kind, target }) => mounting.includes(kind) && target === path);
  return accessInside(plan, parentOf(path)) === "rw" && !isMountPoint;
}
