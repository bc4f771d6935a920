import type { Limits } from "./limits.ts";

/** What is known of an engine and of the image, before anything is asked of it. Plain data, so that tests can write it. */
export interface EngineFacts {
  readonly endpoint: string;
  /** Whether it runs on this machine: only then does it see the caller's directories. */
  readonly local: boolean;
  readonly flavour: "podman" | "docker";
  readonly version: string;
  readonly rootless: boolean;
  /** Docker's `userns-remap`: root inside is nobody outside, so no directory of the caller's can be used. */
  readonly remapped: boolean;
  readonly selinux: boolean;
  readonly runtime: string;
  readonly enforces: { readonly memory: boolean; readonly cpus: boolean; readonly pids: boolean };
  readonly image: {
    readonly name: string;
    readonly id: string;
    /** Where each container gets a directory of its own, as the image says (VOLUME). */
    readonly volumes: readonly string[];
    /** Names of its variables. */
    readonly variables: readonly string[];
  };
}

/** What the owner wants of the container. */
export interface ContainerWishes {
  readonly privileged: boolean;
  /** Whether programs inside may run containers. */
  readonly inner: boolean;
  readonly keepSelinuxLabels: boolean;
  readonly readOnlyRoot: boolean;
  readonly runtime: string | null;
  /** Where the workspace is seen inside; null: at its own path. */
  readonly workspace: string | null;
  /** Directories of the caller's home that are copied into the home inside, in this order. */
  readonly credentials: readonly string[];
}

export interface ContainerPlan {
  readonly engine: EngineFacts;
  readonly profile: "minimal" | "inner" | "privileged";
  /** Exactly these; null: whatever the engine gives. */
  readonly capabilities: readonly string[] | null;
  readonly devices: readonly string[];
  readonly keepSelinuxLabels: boolean;
  readonly readOnlyRoot: boolean;
  readonly runtime: string | null;
  /** Who runs inside, chosen so that what is written in the workspace stays the caller's. */
  readonly user: { readonly uid: number; readonly gid: number };
  /** Whether others inside are nobody's outside, so that what they leave in the workspace is taken back at the end. */
  readonly reclaims: boolean;
  /** Directories of the caller's home that are copied into the home inside, in this order. */
  readonly credentials: readonly string[];
  /** What an engine is told of each process, so that it does not try to exceed what it may. */
  readonly ulimits: Limits["ulimits"];
}

/** What ordinary work as root needs: owning and reading its own files, and becoming another user. */
const minimal = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"];
/** And what a container engine needs: mounts, device files in images, roots of their own, and to drop all of that. */
const inner = [...minimal, "MKNOD", "SETPCAP", "SYS_ADMIN", "SYS_CHROOT"];

/** The design's profiles. */
export function planContainer(
  engine: EngineFacts,
  wishes: ContainerWishes,
  caller: { readonly uid: number; readonly gid: number },
  ulimits: Limits["ulimits"],
): ContainerPlan {
  const profile = wishes.privileged ? "privileged" : wishes.inner ? "inner" : "minimal";
  const isPrivileged = profile === "privileged";
  const user = engine.rootless || caller.uid === 0 ? { uid: 0, gid: 0 } : caller;
  return {
    engine,
    profile,
    // Capabilities are root's. Podman would give them to an ordinary user as well, who could become root by them.
    capabilities: isPrivileged ? null : user.uid !== 0 ? [] : profile === "inner" ? inner : minimal,
    devices: profile === "inner" ? ["/dev/fuse"] : [],
    keepSelinuxLabels: isPrivileged || wishes.keepSelinuxLabels,
    readOnlyRoot: wishes.readOnlyRoot,
    runtime: wishes.runtime,
    user,
    reclaims: engine.rootless && caller.uid !== 0,
    credentials: wishes.credentials,
    ulimits,
  };
}

/** The home of whoever runs inside. */
export function homeInside({ user }: Pick<ContainerPlan, "user">): string {
  return user.uid === 0 ? "/root" : "/home/podbot";
}

/** What of the limits this engine does not enforce. */
export function unenforced(limits: Limits, { enforces }: EngineFacts): readonly string[] {
  return [
    ...(limits.memoryMb !== null && !enforces.memory ? ["sandbox.memory_mb"] : []),
    ...(limits.cpus !== null && !enforces.cpus ? ["sandbox.cpus"] : []),
    ...(limits.pids !== null && !enforces.pids ? ["sandbox.pids"] : []),
  ];
}

/** What the owner should know of the container before it starts. */
export function containerWarnings({ profile, engine }: ContainerPlan, limits: Limits): readonly string[] {
  const missing = limits.mode === "best-effort" ? unenforced(limits, engine) : [];
  return [
    ...(profile === "privileged"
      ? [
          "sandbox.privileged gives up most of the wall: whoever is root inside can become root outside. This is a change of trust.",
        ]
      : []),
    ...missing.map((key) => `${key} is not enforced: ${why(engine)}. sandbox.limits = "require" would start nothing.`),
  ];
}

function why({ flavour, rootless }: EngineFacts): string {
  return rootless ? `a rootless ${flavour} has no control groups of its own on this machine` : `this ${flavour} cannot`;
}
