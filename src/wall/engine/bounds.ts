import { readlinkSync, statSync } from "node:fs";
import type { ContainerPlan } from "../../plan/container.ts";
import type { Plan } from "../../plan/plan.ts";
import { temporary } from "./parts.ts";
import { isGvisor } from "./render.ts";

/** Directories of the host that are of the same kind as a container's own: only their identity tells them apart. */
const alike = ["/dev/shm", "/tmp", "/var/tmp", "/run", "/proc", "/sys/fs/cgroup"];

/** What engines set by themselves in every container. */
const customary = ["PATH", "HOME", "HOSTNAME", "TERM", "container"];

/**
 * What a container may have besides its binds, and what it must not share with this process. Empty where the owner has
 * accepted whatever the engine adds, and where the kernel inside is not the host's (gVisor).
 */
export function boundsOf(plan: Plan, container: ContainerPlan): readonly string[] {
  if (plan.acceptedGaps.includes("engine-extras") || container.profile === "privileged" || isGvisor(container))
    return [];
  // With an open network, the engine's default may well be the host's own.
  const kinds = ["pid", "ipc", "uts", "mnt", "cgroup", ...(plan.network.mode === "open" ? [] : ["net"])];
  return [
    ...container.devices,
    ...(container.readOnlyRoot ? Object.keys(temporary) : []),
    ...kinds.map((kind) => readlinkSync(`/proc/self/ns/${kind}`)),
    ...alike.flatMap(identityOf),
    ...[...customary, ...container.engine.image.variables].map((name) => `=${name}`),
  ];
}

function identityOf(path: string): readonly string[] {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stats === undefined ? [] : [`!${stats.dev}:${stats.ino}`];
}
