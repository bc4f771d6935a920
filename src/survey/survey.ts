import type { CommandRule } from "../policy/commands.ts";
import type { GitLayout } from "../policy/git.ts";
import type { Rule } from "../policy/rule.ts";

/** What the policy must know of a filesystem. Plain data, so that it can be asked elsewhere. */
export interface Ask {
  readonly cwd: string;
  readonly home: string;
  readonly rules: readonly Rule[];
  /** Whether the repository around the working directory matters. */
  readonly git: boolean;
  readonly gitStrict: boolean;
  /** Configurations that git reads besides the repository's own. */
  readonly gitConfigs: readonly string[];
  /** Whose repositories count as one's own. */
  readonly uid: number;
  /** Whether root inside passes by permissions, as in a container. */
  readonly mighty: boolean;
  readonly commands: readonly CommandRule[];
  /** The PATH of the command inside, by which wrapped commands are found. */
  readonly path: string;
  /** Directories that will be mount points whether or not they exist. */
  readonly mountPoints: readonly string[];
  /** Whether the plan starts from an empty root and must know what lies in `/`. */
  readonly emptyRoot: boolean;
  /** Whether names are resolved inside. */
  readonly network: boolean;
}

export type NodeKind = "directory" | "file" | "link" | "socket" | "other";

/** One name in a filesystem, as it was when it was looked at. */
export interface Node {
  readonly kind: NodeKind;
  /** Device and inode: what the name stood for. */
  readonly identity: string;
  /** How many names the inode has. */
  readonly links: number;
}

/** A wrapped command's program: one of possibly several. */
export interface Target {
  /** Resolved. */
  readonly path: string;
  readonly identity: string;
  /**
   * The package around a program that is a script: it finds its own parts by relative paths, so the real one must be
   * mounted elsewhere together with them.
   */
  readonly package: { readonly path: string; readonly identity: string } | null;
}

export interface Script {
  readonly path: string;
  readonly identity: string;
  /** From its first line; /bin/sh where it has none. Resolved. */
  readonly interpreter: string;
  readonly interpreterArgument: string;
}

/** The answers, complete: nothing else is read to make a plan. */
export interface Survey {
  /** The working directory and the home, resolved. */
  readonly cwd: string;
  readonly home: string;
  /** For each pattern of the rules, what it stands for now: resolved paths, sorted. */
  readonly matches: Readonly<Record<string, readonly string[]>>;
  /** Everything that was looked at and exists, by resolved path, with all its ancestors. */
  readonly nodes: Readonly<Record<string, Node>>;
  /**
   * For what must not come into being: the first name on the way that is missing, its directory resolved, and
   * whether that is the last one as well. None for a link that leads in a circle.
   */
  readonly firstMissing: Readonly<Record<string, { readonly path: string; readonly isLast: boolean } | undefined>>;
  /** Missing mount points and the nearest directory above them that exists. */
  readonly missing: Readonly<Record<string, string>>;
  /** What lies in those directories, so that they can be composed anew around a missing mount point. */
  readonly listings: Readonly<Record<string, readonly Listed[]>>;
  readonly git: GitLayout | null;
  /** Repositories that a short look at the working directory shows; null where the question does not ask. */
  readonly repositories: Repositories | null;
  readonly targets: Readonly<Record<string, readonly Target[]>>;
  readonly scripts: Readonly<Record<string, Script>>;
  /** Unix sockets on which a program of the host listens. */
  readonly sockets: readonly string[];
  /** The file to which /etc/resolv.conf leads; null where nobody asks, or there is none. */
  readonly resolver: string | null;
}

/** Directories that git would take for repositories, at and below a workspace. */
export interface Repositories {
  readonly paths: readonly string[];
  /** How many levels below were looked at, all of them: what is not complete cannot be compared. */
  readonly depth: number;
}

export interface Listed {
  readonly name: string;
  readonly kind: NodeKind;
  readonly identity: string;
  /** Where a link leads. */
  readonly to: string;
}
