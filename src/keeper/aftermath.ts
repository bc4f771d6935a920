import { lstatSync, readdirSync, realpathSync } from "node:fs";
import { basename, dirname } from "node:path";
import type { Operation, Plan } from "../plan/plan.ts";
import { gitAftermath } from "./git-aftermath.ts";

/** What the wall could not prevent, the owner is at least told. */
export function appeared(plan: Plan): readonly string[] {
  const created = presentOf(plan.watched);
  const swapped = plan.operations.filter((operation) => operation.kind === "bind" && isSwapped(operation));
  const replaced = Object.entries(plan.links).filter(([path, to]) => leadsTo(path) !== to);
  return [
    ...gitAftermath(plan),
    ...created.map(
      (path) => `${path} was created during the run; a rule would have protected it, had it existed. Review it.`,
    ),
    ...swapped.map(
      ({ target }) => `${target} was replaced outside during the run; from then on it was not protected. Review it.`,
    ),
    ...replaced.map(
      ([path]) => `${path} was a link to something protected and was replaced during the run. Review it.`,
    ),
  ];
}

/** Many lie in one directory, which is listed once. */
function presentOf(paths: readonly string[]): readonly string[] {
  const directories = new Set(paths.map((path) => dirname(path)));
  const names = new Map([...directories].map((directory) => [directory, namesIn(directory)]));
  return paths.filter((path) => names.get(dirname(path))?.has(basename(path)));
}

function namesIn(directory: string): ReadonlySet<string> {
  try {
    return new Set(readdirSync(directory));
  } catch {
    return new Set();
  }
}

/** A mount is lost when its place is taken by another file, as programs do that write by renaming. */
function isSwapped({ source, target, access, identity }: Extract<Operation, { kind: "bind" }>): boolean {
  if (access !== "ro" || source !== target || identity === null) return false;
  try {
    const stats = lstatSync(target);
    return `${stats.dev}:${stats.ino}` !== identity;
  } catch {
    // What is gone does no harm; it may be what another sandbox held, which Podbot itself has removed.
    return false;
  }
}

function leadsTo(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    return "";
  }
}
