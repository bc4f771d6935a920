import { canMountByDescriptor, canScopeAbstractSockets } from "../../machine/namespaces.ts";
import { limitsSet } from "../../plan/limits.ts";
import type { Plan } from "../../plan/plan.ts";
import { mountsByPath } from "../../plan/request.ts";
import { seccompArchitectures } from "../seccomp.ts";
import type { Gap } from "../wall.ts";
import { abstractSockets } from "./render.ts";

/** bubblewrap itself looks up where a mount goes, while agents in the same directory may exchange what is there. */
export const gapByPath: Gap = {
  name: mountsByPath,
  about:
    "Mounts cannot be built by descriptor here, which takes Linux 5.12 and the right to make user namespaces: an agent that already runs in the directory could lead a mount elsewhere.",
  remedy: `Allow user namespaces to podbot-launch (\`podbot doctor\` says how), or accept it: sandbox.accept_gaps = ["${mountsByPath}"].`,
};

/** What of a plan bubblewrap cannot enforce on a machine like this. */
export function findGaps(plan: Plan, machine: { readonly arch: string; readonly release: string }): readonly Gap[] {
  const gaps: Gap[] = [];
  if (plan.network.mode === "open" && !canScopeAbstractSockets(machine.release)) {
    gaps.push({
      name: abstractSockets,
      about:
        "With an open network, abstract sockets of the host (X11, some D-Bus) are in reach on kernels before 6.12.",
      remedy: `Use --network none, or accept it: sandbox.accept_gaps = ["${abstractSockets}"].`,
    });
  }
  if (!canMountByDescriptor(machine.release)) gaps.push(gapByPath);
  if (!seccompArchitectures.includes(machine.arch)) {
    gaps.push({
      name: "seccomp",
      about: `There is no system call filter for ${machine.arch}.`,
      remedy: `Use a machine with ${seccompArchitectures.join(" or ")}.`,
    });
  }
  const limits = limitsSet(plan.limits);
  if (plan.limits.mode === "require" && limits.length > 0) {
    gaps.push({
      name: "limits",
      about: `bubblewrap limits nothing: ${limits.join(", ")} cannot be enforced.`,
      remedy: 'Use --wall engine, or sandbox.limits = "best-effort".',
    });
  }
  return gaps.filter(({ name }) => !plan.acceptedGaps.includes(name));
}
