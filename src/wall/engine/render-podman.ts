import type { ContainerPlan } from "../../plan/container.ts";
import type { Plan } from "../../plan/plan.ts";
import { type Bind, type ContainerParts, temporary, volumesOf } from "./parts.ts";

type Fields = Readonly<Record<string, unknown>>;

/** The plan as Podman's own API asks for a container. */
export function renderForPodman(parts: ContainerParts): Fields {
  const { plan, container, name, labels, first, binds, seccompProfile } = parts;
  const { user, engine } = container;
  return {
    name,
    image: engine.image.id,
    entrypoint: first,
    command: [],
    labels,
    work_dir: plan.directory,
    user: `${user.uid}:${user.gid}`,
    hostname: "podbot",
    // What the image wants to be stopped with or checked by is nothing to the warden.
    stop_signal: 15,
    healthconfig: { Test: ["NONE"] },
    // The engine removes what is left when the warden ends, whoever is still there to ask for it.
    remove: true,
    // What is not said, a containers.conf decides: it could name the host's.
    ...apart,
    userns: { nsmode: "host" },
    init: false,
    ...(plan.network.mode === "open" ? {} : { netns: { nsmode: "none" } }),
    mounts: [...binds.map(mountOf), ...(container.readOnlyRoot ? Object.entries(temporary).map(inMemory) : [])],
    // A path that the image chose may lead over Podbot's own corner. What the image has there stays visible without.
    image_volume_mode: "ignore",
    volumes: volumesOf(parts).map((Dest) => ({ Dest, IsAnonymous: true })),
    read_only_filesystem: container.readOnlyRoot,
    ...profileOf(container),
    ...(seccompProfile === null ? {} : { seccomp_profile_path: seccompProfile }),
    r_limits: container.ulimits.map(({ name, soft, hard }) => ({ type: name, soft, hard })),
    resource_limits: limitsOf(plan),
  };
}

const own = { nsmode: "private" };
export const apart: Fields = { pidns: own, ipcns: own, utsns: own, cgroupns: own };

function profileOf({ capabilities, keepSelinuxLabels, devices }: ContainerPlan): Fields {
  if (capabilities === null) return { privileged: true };
  return {
    privileged: false,
    cap_drop: ["ALL"],
    cap_add: capabilities,
    no_new_privileges: true,
    selinux_opts: keepSelinuxLabels ? [] : ["disable"],
    devices: devices.map((path) => ({ path })),
  };
}

function limitsOf({ limits: { memoryMb, cpus, pids } }: Plan): Fields {
  const bytes = (memoryMb ?? 0) * 1_048_576;
  return {
    // As much again would be swap.
    ...(memoryMb === null ? {} : { memory: { limit: bytes, swap: bytes } }),
    ...(cpus === null ? {} : { cpu: { quota: Math.round(cpus * 100_000), period: 100_000 } }),
    ...(pids === null ? {} : { pids: { limit: pids } }),
  };
}

/** Not recursive: read-only holds for the one mount and not for those below it, and nobody has looked at those. */
function mountOf({ source, target, access }: Bind): Fields {
  return { type: "bind", source, destination: target, options: ["bind", access, "rprivate", "nosuid", "nodev"] };
}

function inMemory([destination, mode]: readonly [string, string]): Fields {
  return { type: "tmpfs", source: "tmpfs", destination, options: [mode, "nosuid", "nodev"] };
}
