import { WallError } from "../errors.ts";
import type { Operation } from "../plan/plan.ts";
import type { BoxBirth } from "./wall.ts";

/** What a plan has a place for, now that it is known where it lies. */
export function bindOwn(
  { part, target, access, why }: Extract<Operation, { kind: "own" }>,
  own: BoxBirth["own"],
): Extract<Operation, { kind: "bind" }> {
  const source = own?.[part];
  if (source === undefined) throw new WallError("WALL_FAILED", `Nobody has brought what is to lie at ${target}.`);
  return { kind: "bind", source, target, access, identity: null, why };
}
