import type { ContainerPlan } from "../../plan/container.ts";
import { type Bind, type ContainerParts, temporary, volumesOf } from "./parts.ts";

type Fields = Readonly<Record<string, unknown>>;

/** The plan as Docker's API asks for a container. */
export function renderForDocker(parts: ContainerParts): Fields {
  const { plan, container, labels, first } = parts;
  const { user, engine } = container;
  return {
    Image: engine.image.id,
    Entrypoint: first,
    Cmd: [],
    Labels: labels,
    WorkingDir: plan.directory,
    User: `${user.uid}:${user.gid}`,
    Hostname: "podbot",
    // What the image wants to be stopped with or checked by is nothing to the warden.
    StopSignal: "SIGTERM",
    Healthcheck: { Test: ["NONE"] },
    HostConfig: hostConfig(parts),
  };
}

function hostConfig(parts: ContainerParts): Fields {
  const { plan, container, binds } = parts;
  const { limits } = plan;
  return {
    // The engine removes what is left when the warden ends, whoever is still there to ask for it.
    AutoRemove: true,
    ...(plan.network.mode === "open" ? {} : { NetworkMode: "none" }),
    // What is not said, a daemon.json decides: it could share one with other containers, or put a program before ours.
    IpcMode: "private",
    Init: false,
    Mounts: [...binds.map(mountOf), ...volumesOf(parts).map((Target) => ({ Type: "volume", Target }))],
    ...(container.readOnlyRoot ? { ReadonlyRootfs: true, Tmpfs: temporary } : {}),
    ...profileOf(container),
    ...(container.runtime === null ? {} : { Runtime: container.runtime }),
    Ulimits: container.ulimits.map(({ name, soft, hard }) => ({ Name: name, Soft: soft, Hard: hard })),
    ...(limits.memoryMb === null ? {} : memory(limits.memoryMb)),
    ...(limits.cpus === null ? {} : { NanoCpus: Math.round(limits.cpus * 1e9) }),
    ...(limits.pids === null ? {} : { PidsLimit: limits.pids }),
  };
}

/** As much again would be swap. */
function memory(mebibytes: number): Fields {
  const bytes = mebibytes * 1_048_576;
  return { Memory: bytes, MemorySwap: bytes };
}

function profileOf({ capabilities, keepSelinuxLabels, devices }: ContainerPlan): Fields {
  if (capabilities === null) return { Privileged: true };
  return {
    Privileged: false,
    CapDrop: ["ALL"],
    CapAdd: capabilities,
    SecurityOpt: ["no-new-privileges", ...(keepSelinuxLabels ? [] : ["label=disable"])],
    Devices: devices.map((path) => ({ PathOnHost: path, PathInContainer: path, CgroupPermissions: "rwm" })),
  };
}

function mountOf({ source, target, access }: Bind): Fields {
  // Read-only holds for the one mount and not for those below it; and nobody has looked at those. So they stay out.
  const BindOptions = { Propagation: "rprivate", NonRecursive: true };
  return { Type: "bind", Source: source, Target: target, ReadOnly: access === "ro", BindOptions };
}
