import type { CommandRule } from "../policy/commands.ts";
import type { Rule } from "../policy/rule.ts";
import type { Ask } from "../survey/survey.ts";

export type NetworkMode = "none" | "open";

/** A variable of the environment inside. Values are not part of a plan: it holds references. */
export type Variable =
  | { readonly name: string; readonly from: "caller" }
  | { readonly name: string; readonly from: "plan"; readonly value: string }
  | { readonly name: string; readonly from: "owner"; readonly layer: string }
  | { readonly name: string; readonly from: "secret"; readonly secret: string; readonly optional: boolean };

/** Everything that was decided before the filesystem is looked at. */
export interface Request {
  readonly command: readonly [string, ...string[]];
  readonly cwd: string;
  readonly home: string;
  /** `host`: the host's root, read-only. `minimal`: /usr, /etc and libraries, a private home, nothing else. */
  readonly root: "host" | "minimal";
  readonly network: { readonly mode: NetworkMode; readonly origin: string };
  readonly rules: readonly Rule[];
  readonly git: { readonly mode: "off" | "on" | "strict"; readonly layer: Rule["layer"] };
  readonly commands: readonly CommandRule[];
  readonly variables: readonly Variable[];
  /** PATH of the command. */
  readonly path: string;
  /** Whether user namespaces stay available inside, so that a sandbox can be built in the sandbox. */
  readonly nesting: boolean;
  /** Whether this is already the inside of a sandbox. */
  readonly nested: boolean;
  /** The engine's socket, where the owner hands it in. */
  readonly dockerSocket: string | null;
  /** Where Podbot keeps directories of the sandbox's own. */
  readonly keptDirectory: string;
  /** Podbot's native programs, resolved. */
  readonly native: { readonly enter: string; readonly shim: string };
  readonly graceMs: number;
  /** Who starts it. Root's files in /proc are writable without any capability. */
  readonly uid: number;
  /** Names of gaps with which the owner starts all the same. */
  readonly acceptedGaps: readonly string[];
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

/** What must be known of the filesystem to plan this request. */
export function questions(request: Request): Ask {
  return {
    cwd: request.cwd,
    home: request.home,
    rules: [...request.rules, ...placeRules(request)],
    git: request.git.mode !== "off",
    gitStrict: request.git.mode === "strict",
    uid: request.uid,
    commands: request.commands,
    path: request.path,
    mountPoints: request.root === "minimal" ? [] : request.rules.flatMap(({ own, pattern }) => (own ? [pattern] : [])),
    emptyRoot: request.root === "minimal",
    network: request.network.mode === "open",
  };
}

/** Places that the wall itself mounts are looked at like any other, so that they can be pinned. */
function placeRules(request: Request): readonly Rule[] {
  const places = [request.native.enter, request.native.shim, ...(request.dockerSocket ? [request.dockerSocket] : [])];
  return ["/", ...places, ...(request.uid === 0 ? kernelSwitches : [])].map((pattern) => ({
    access: "ro",
    pattern,
    written: pattern,
    layer: "podbot",
    origin: "the wall",
    trusted: true,
  }));
}
