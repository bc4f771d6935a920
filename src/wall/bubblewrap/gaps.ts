import { canScopeAbstractSockets } from "../../machine/namespaces.ts";
import type { Plan } from "../../plan/plan.ts";
import type { Gap } from "../wall.ts";
import { abstractSockets } from "./render.ts";

const seccompArchitectures: readonly string[] = ["x64", "arm64"];

/** What of a plan bubblewrap cannot enforce on a machine like this. */
export function findGaps(plan: Plan, machine: { readonly arch: string; readonly release: string }): readonly Gap[] {
  const gaps: Gap[] = [];
  if (plan.network.mode !== "none" && !canScopeAbstractSockets(machine.release)) {
    gaps.push({
      name: abstractSockets,
      about:
        "With an open network, abstract sockets of the host (X11, some D-Bus) are in reach on kernels before 6.12.",
      remedy: `Use --network none, or accept it: sandbox.accept_gaps = ["${abstractSockets}"].`,
    });
  }
  if (!seccompArchitectures.includes(machine.arch)) {
    gaps.push({
      name: "seccomp",
      about: `There is no system call filter for ${machine.arch}.`,
      remedy: `Use a machine with ${seccompArchitectures.join(" or ")}.`,
    });
  }
  return gaps.filter(({ name }) => !plan.acceptedGaps.includes(name));
}
