import type { Plan } from "../plan/plan.ts";
import { hasGateway } from "../plan/request.ts";

/** Where names are asked for, by UDP and by TCP: every box with doors has these. */
export const namesPort = 53;

/** The ports at which a box has doors besides; null where it has none at all. */
export function doorsOf({ network }: Pick<Plan, "network">): readonly number[] | null {
  return hasGateway(network) ? network.ports.filter((port) => port !== namesPort) : null;
}
