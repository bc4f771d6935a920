import type { Placeholder, RuleLayer } from "../policy/rule.ts";
import type { Repositories } from "../survey/survey.ts";
import type { ContainerPlan } from "./container.ts";
import type { Limits } from "./limits.ts";
import type { ClonePlan, NetworkPlan, Variable } from "./request.ts";

/** One step of building the filesystem inside, in order. Each says why it is there. */
export type Operation =
  | {
      readonly kind: "bind";
      readonly source: string;
      readonly target: string;
      readonly access: "ro" | "rw";
      /** What `source` stood for when it was surveyed; null for what Podbot itself makes. */
      readonly identity: string | null;
      readonly why: string;
    }
  | { readonly kind: "tmpfs"; readonly target: string; readonly mode: number; readonly why: string }
  | { readonly kind: "proc" | "dev"; readonly target: string; readonly why: string }
  | { readonly kind: "link"; readonly target: string; readonly to: string; readonly why: string }
  | { readonly kind: "directory"; readonly target: string; readonly mode: number; readonly why: string }
  | {
      readonly kind: "file";
      readonly target: string;
      readonly content: string;
      readonly mode: number;
      /** Mounted read-only over what is there, as nothing can be made in what is the host's. */
      readonly over?: true;
      readonly why: string;
    }
  /** What a file of the host's holds when the box is built, in a file of the box's own. */
  | {
      readonly kind: "copy";
      readonly source: string;
      readonly target: string;
      /** What `source` stood for when it was surveyed. */
      readonly identity: string | null;
      readonly why: string;
    }
  /** An empty file that nobody may read lies over the target. */
  | {
      readonly kind: "mask";
      readonly target: string;
      /** A socket, which its program may remove at any time: then there is nothing to mask. */
      readonly fleeting?: true;
      /** Where it lies outside, if not at the target. */
      readonly source?: string;
      readonly why: string;
    }
  /** A link, mounted onto itself: so it can be neither replaced nor removed. */
  | { readonly kind: "hold"; readonly target: string; readonly identity: string; readonly why: string }
  | { readonly kind: "mode"; readonly target: string; readonly mode: number; readonly why: string }
  /** Where a session's own directory is mounted, read-only, when it is born. No plan knows which that will be. */
  | { readonly kind: "inlet"; readonly target: string; readonly why: string }
  /** Where something of the session's own is mounted when it is born. No plan knows which that will be. */
  | {
      readonly kind: "own";
      readonly part: OwnPart;
      readonly target: string;
      readonly access: "ro" | "rw";
      readonly why: string;
    }
  /** Where the session's certificate authority is made known when the box is born. No plan knows which that will be. */
  | { readonly kind: "trust"; readonly target: string; readonly why: string }
  /** No more changes to the filesystem that was mounted at the target. */
  | { readonly kind: "seal"; readonly target: string; readonly why: string };

/** The directory with a session's token, the program that answers git with it, the directory for its clone. */
export type OwnPart = "secrets" | "askpass" | "clone";

/** What was decided for one path, and by which rule. */
export interface PathDecision {
  readonly path: string;
  readonly access: "exclude" | "ro" | "rw";
  readonly rule: string;
  readonly layer: RuleLayer;
  readonly origin: string;
  /** Rules for the same path that did not hold. */
  readonly beaten: readonly string[];
  /** False where the rule changes nothing, since the path is already so. */
  readonly mounted: boolean;
}

export interface CommandDecision {
  readonly command: string;
  readonly rule: string;
  readonly targets: readonly string[];
}

/** A name that Podbot makes on the host while the sandbox runs, so that nobody can make it inside. */
export interface HeldName {
  readonly path: string;
  readonly placeholder: Placeholder;
  /** What the directory around it stood for when it was surveyed, if it was looked at. */
  readonly directory: string | null;
}

/** What will be built: plain data, frozen, without secrets and without anything of one session. */
export interface Plan {
  readonly version: 1;
  readonly wall: "bubblewrap" | "engine";
  /** Whether the box outlives the command. */
  readonly session: boolean;
  /** `image`: what the container image holds. */
  readonly root: "host" | "minimal" | "image";
  /** What an engine is asked for; null behind bubblewrap. */
  readonly container: ContainerPlan | null;
  readonly limits: Limits;
  /** `empty`: the working directory is the container's own, and goes with it. `clone`: the session's own. */
  readonly workspace: "mounted" | "empty" | "clone";
  /** What is in it, where it is a clone. */
  readonly clone: ClonePlan | null;
  /** The working directory on the host, and as it is seen inside. Behind bubblewrap, a mounted one is the same. */
  readonly cwd: string;
  readonly directory: string;
  readonly home: string;
  readonly command: readonly [string, ...string[]];
  readonly network: NetworkPlan;
  readonly nesting: boolean;
  readonly graceMs: number;
  readonly acceptedGaps: readonly string[];
  readonly variables: readonly Variable[];
  /** Directories of the sandbox's own, made on the host before the start. */
  readonly kept: readonly string[];
  readonly held: readonly HeldName[];
  readonly operations: readonly Operation[];
  readonly paths: readonly PathDecision[];
  readonly commands: readonly CommandDecision[];
  /** Names that a rule protects where they exist; if one appears while the sandbox runs, the owner is told. */
  readonly watched: readonly string[];
  /** Links to protected paths, and where they lead ("": nowhere); if one leads elsewhere afterwards, the owner is told. */
  readonly links: Readonly<Record<string, string>>;
  /** What git saw in the workspace before; null where git is not protected there. */
  readonly git: GitSight | null;
  readonly warnings: readonly string[];
}

/** By which the owner is told afterwards what became of the repository. */
export interface GitSight {
  /** The repository around the working directory: what leads to it, and where it is kept. */
  readonly own: {
    readonly entry: string;
    readonly top: string;
    readonly gitDir: string;
    readonly commonDir: string;
  } | null;
  /** Where an index of it, of its worktrees or submodules has another repository, and whether there is one. */
  readonly gitlinks: Readonly<Record<string, boolean>>;
  /** Those whose git directory lies in themselves. */
  readonly embedded: readonly string[];
  /** Repositories that a short look at the workspace shows. */
  readonly repositories: Repositories | null;
}
