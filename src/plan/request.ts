import type { CommandRule } from "../policy/commands.ts";
import type { NetworkPolicy } from "../policy/network.ts";
import { nameOf } from "../policy/paths.ts";
import type { Rule } from "../policy/rule.ts";
import type { Ask } from "../survey/survey.ts";
import type { ContainerWishes, EngineFacts } from "./container.ts";
import type { Limits, Ulimit } from "./limits.ts";

/** `allowlist` and `learn` lead through the gateway alone. */
export type NetworkMode = "none" | "open" | "allowlist" | "learn";

export interface NetworkPlan {
  readonly mode: NetworkMode;
  readonly origin: string;
  /** What the gateway lets through; null where there is none. */
  readonly policy: NetworkPolicy | null;
  /** Ports at which the box has doors, in order; none where there is no gateway. */
  readonly ports: readonly number[];
  /** By which proxy the gateway dials; absent where it dials everything itself. */
  readonly proxy?: ProxyPlan;
}

export interface ProxyPlan {
  /** Without whoever may use it. */
  readonly url: string;
  readonly origin: string;
  /** What is dialled without it, as NO_PROXY has it. */
  readonly direct: readonly string[];
  /** What cannot be enforced because of it. */
  readonly gap: string;
}

/** A variable of the environment inside. Values are not part of a plan: it holds references. */
export type Variable =
  | { readonly name: string; readonly from: "caller" }
  | { readonly name: string; readonly from: "plan"; readonly value: string }
  | { readonly name: string; readonly from: "owner"; readonly layer: string }
  | { readonly name: string; readonly from: "secret"; readonly secret: string; readonly optional: boolean };

/** What is cloned before the agent starts. */
export interface ClonePlan {
  /** `OWNER/NAME`. */
  readonly repository: string;
  readonly branch: string;
  readonly url: string;
}

/** Everything that was decided before the filesystem is looked at. */
export interface Request {
  /** Whether the box outlives the command: then the warden is its first program and takes orders. */
  readonly session: boolean;
  readonly command: readonly [string, ...string[]];
  /** Whether the working directory is mounted, or an empty one or a clone of the session's own takes its place. */
  readonly workspace: "mounted" | "empty" | "clone";
  /** What is cloned, and where it is seen inside. */
  readonly clone?: (ClonePlan & { readonly directory: string }) | null;
  /** Whether the session has a token for git. */
  readonly token?: boolean;
  readonly cwd: string;
  readonly home: string;
  /**
   * `host`: the host's root, read-only. `minimal`: /usr, /etc and libraries, a private home, nothing else. `image`: what
   * a container image holds.
   */
  readonly root: "host" | "minimal" | "image";
  /** The engine that is asked, and for what; null behind bubblewrap. */
  readonly container: ContainerRequest | null;
  readonly limits: Limits;
  readonly network: NetworkPlan;
  readonly rules: readonly Rule[];
  readonly git: {
    readonly mode: "off" | "on" | "strict";
    readonly layer: Rule["layer"];
    /** Configurations that git reads besides the repository's own. */
    readonly configs?: readonly string[];
  };
  readonly commands: readonly CommandRule[];
  readonly variables: readonly Variable[];
  /** PATH of the command. */
  readonly path: string;
  /** Whether user namespaces stay available inside, so that a sandbox can be built in the sandbox. */
  readonly nesting: boolean;
  /** Whether this is already the inside of a sandbox. */
  readonly nested: boolean;
  /** Whether that sandbox has a gateway: then its names and its list of roots lie where nothing can be mounted again. */
  readonly behindGateway?: boolean;
  /** The engine's socket, where the owner hands it in. */
  readonly dockerSocket: string | null;
  /** Where Podbot keeps directories of the sandbox's own. */
  readonly keptDirectory: string;
  /** Podbot's native programs, resolved. */
  readonly native: {
    readonly enter: string;
    readonly shim: string;
    readonly warden: string;
    readonly reclaim: string;
  };
  readonly graceMs: number;
  /** Who starts it. Root's files in /proc are writable without any capability. */
  readonly uid: number;
  /** Names of gaps with which the owner starts all the same. */
  readonly acceptedGaps: readonly string[];
}

export interface ContainerRequest {
  readonly engine: EngineFacts;
  /** Where the engine listens on this machine, resolved. Whoever reaches it can have any container made, and the host. */
  readonly engineSocket: string | null;
  readonly wishes: ContainerWishes;
  readonly caller: { readonly uid: number; readonly gid: number };
  /** What this machine lets a process have of `nofile` and `nproc` at most. */
  readonly machineUlimits: readonly Ulimit[];
}

/** Home directories in a minimal root are Podbot's own. */
export const keptHome = "home";

/** Where root changes the kernel by writing files. */
export const kernelSwitches: readonly string[] = [
  "/proc/acpi",
  "/proc/bus",
  "/proc/driver",
  "/proc/fs",
  "/proc/irq",
  "/proc/mtrr",
  "/proc/scsi",
  "/proc/sys",
  "/proc/sysrq-trigger",
];

/** What the kernel tells of the caller's keys, which have no namespace. */
const kernelKeys: readonly string[] = ["/proc/key-users", "/proc/keys"];

/** What it tells its root of its memory and timers, as the owner of these files and without any capability. */
const kernelMemory: readonly string[] = [
  "/proc/kcore",
  "/proc/kpagecgroup",
  "/proc/kpagecount",
  "/proc/kpageflags",
  "/proc/pagetypeinfo",
  "/proc/slabinfo",
  "/proc/timer_list",
  "/proc/vmallocinfo",
];

/**
 * Where the kernel tells what is none of a sandbox's business. In a sandbox around others nothing is masked: the kernel
 * lets them mount a /proc of their own only where all of this one is seen.
 */
export function kernelSecrets({ nesting, uid, root }: Pick<Request, "nesting" | "uid" | "root">): readonly string[] {
  if (nesting || root === "image") return [];
  return [...kernelKeys, ...(uid === 0 ? kernelMemory : [])];
}

/** Where systems keep the certificates that everybody trusts. */
export const certificateBundles: readonly string[] = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/ssl/cert.pem",
];

/** Whether a gateway stands between the box and the world. */
export function hasGateway({ policy }: NetworkPlan): boolean {
  return policy !== null;
}

/** What must be known of the filesystem to plan this request. */
export function questions(request: Request): Ask {
  return {
    cwd: request.cwd,
    home: request.home,
    rules: [...request.rules, ...placeRules(request)],
    git: request.git.mode !== "off",
    gitStrict: request.git.mode === "strict",
    gitConfigs: request.git.configs ?? [],
    uid: request.uid,
    mighty: request.container !== null,
    commands: request.commands,
    path: request.path,
    mountPoints: request.root === "minimal" ? [] : mountPoints(request),
    emptyRoot: request.root === "minimal",
    network: request.network.mode !== "none",
  };
}

/** Where directories are mounted that the host may not have. */
function mountPoints({ rules, command: [program], container, clone }: Request): readonly string[] {
  const own = rules
    .filter(({ own, fresh }) => own !== undefined || fresh?.program === nameOf(program))
    .map(({ pattern }) => pattern);
  return [...own, ...(container === null && clone ? [clone.directory] : [])];
}

/** Places that the wall itself mounts are looked at like any other, so that they can be pinned. */
function placeRules(request: Request): readonly Rule[] {
  const { enter, shim, warden, reclaim } = request.native;
  const places = [
    ...(request.container === null ? [enter, shim, ...(request.session ? [warden] : [])] : [warden, reclaim]),
    ...(request.container === null && hasGateway(request.network) ? certificateBundles : []),
    ...[request.dockerSocket, request.container?.engineSocket ?? null].filter((path) => path !== null),
  ];
  const kernel = [...(request.uid === 0 ? kernelSwitches : []), ...kernelSecrets(request)];
  return ["/", ...places, ...kernel].map((pattern) => ({
    access: "ro",
    pattern,
    written: pattern,
    layer: "podbot",
    origin: "the wall",
    trusted: true,
  }));
}

/** A gap that the owner may accept: bubblewrap itself looks up where each mount goes. */
export const mountsByPath = "mounts-by-path";

/** Whether the wall can mount a link onto itself: bubblewrap and engines, which follow links, cannot. */
export function holdsLinks({ container, acceptedGaps }: Pick<Request, "container" | "acceptedGaps">): boolean {
  return container === null && !acceptedGaps.includes(mountsByPath);
}
