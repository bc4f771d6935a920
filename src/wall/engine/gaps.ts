import { type ContainerPlan, type EngineFacts, unenforced } from "../../plan/container.ts";
import type { Plan } from "../../plan/plan.ts";
import { doorsOf } from "../guarded.ts";
import { seccompArchitectures } from "../seccomp.ts";
import type { Gap } from "../wall.ts";
import { runtimeOf } from "./render.ts";

/** Runtimes whose containers have the network that the kernel shows of their processes. Of gVisor, see `doors.ts`. */
const plainRuntimes = /^(io\.containerd\.)?(runc|crun|youki|runsc)([.-].*)?$/;

/** Whether its containers are root's and the caller is not: then only the engine can put somebody into their network. */
export function needsHelper({ rootless }: Pick<EngineFacts, "rootless">, uid: number): boolean {
  return !rootless && uid !== 0;
}

/** Why nobody here can open doors in it; null where it can be tried. */
function doorsObstacle(container: ContainerPlan, { uid }: { readonly uid: number }): string | null {
  const { engine } = container;
  const runtime = runtimeOf(container);
  if (!engine.local) return "it is on another machine";
  if (needsHelper(engine, uid) && engine.flavour !== "docker") return "it is root's, and only root may enter it";
  return plainRuntimes.test(runtime) ? null : `a machine of its own is around it, or may be (${runtime})`;
}

/** What the warden has found in the container that no plan has put there. */
export function engineExtras(found: string): Gap {
  return {
    name: "engine-extras",
    about: `The engine's own settings change the container, and the plan has none of it: ${found}.`,
    remedy:
      'Take it out of the engine\'s settings (containers.conf, mounts.conf, daemon.json) or of the image, or accept it: sandbox.accept_gaps = ["engine-extras"].',
  };
}

/** What of a plan an engine cannot enforce. */
export function findEngineGaps(plan: Plan, machine: { readonly arch: string; readonly uid: number }): readonly Gap[] {
  const { container, limits } = plan;
  if (container === null) return [];
  const { engine, profile } = container;
  const missing = limits.mode === "require" ? unenforced(limits, engine) : [];
  const gaps: Gap[] = [];
  if (!engine.local) {
    gaps.push({
      name: "remote-engine",
      about: `${engine.endpoint} is not on this machine, and what the plan mounts is.`,
      remedy: "Use an engine of this machine.",
    });
  }
  if (engine.remapped) {
    gaps.push({
      name: "userns-remap",
      about: "This Docker maps everybody inside to somebody else outside, who may not write your directory.",
      remedy: 'Use Podman, or a Docker without "userns-remap".',
    });
  }
  if (profile === "inner" && !engine.rootless) {
    gaps.push({
      name: "inner-capabilities",
      about: "Containers inside need SYS_ADMIN and MKNOD, by which root of a rootful engine can become root outside.",
      remedy: 'Use a rootless Podman, or accept it: sandbox.accept_gaps = ["inner-capabilities"].',
    });
  }
  if (profile === "inner" && plan.paths.some(({ access, mounted }) => mounted && access !== "rw")) {
    gaps.push({
      name: "inner-protection",
      about:
        "Containers inside need SYS_ADMIN, by which what is read-only or hidden in the workspace can be uncovered.",
      remedy: 'Leave containers out, or accept it: sandbox.accept_gaps = ["inner-protection"].',
    });
  }
  if (plan.commands.length > 0) {
    gaps.push({
      name: "commands",
      about: `Rules for commands (${plan.commands.map(({ command }) => command).join(", ")}) are not enforced in a container.`,
      remedy: 'Use --wall bubblewrap, leave the rules out, or accept it: sandbox.accept_gaps = ["commands"].',
    });
  }
  if (missing.length > 0) {
    gaps.push({
      name: "limits",
      about: `${missing.join(", ")} cannot be enforced by this engine on this machine.`,
      remedy: 'Use an engine that can (rootful, or rootless on cgroup v2), or sandbox.limits = "best-effort".',
    });
  }
  const obstacle = doorsOf(plan) === null ? null : doorsObstacle(container, machine);
  if (obstacle !== null) {
    gaps.push({
      name: "doors",
      about: `Doors cannot be opened in the network of this container: ${obstacle}.`,
      remedy: "Use --wall bubblewrap or another engine, or --network none or open.",
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
