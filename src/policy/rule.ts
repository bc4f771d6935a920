/** What a path may be used for, least first. */
export type Access = "exclude" | "ro" | "rw";

const rank = { exclude: 0, ro: 1, rw: 2 } as const satisfies Record<Access, number>;

/** Positive where `a` grants more than `b`. */
export function compareAccess(a: Access, b: Access): number {
  return rank[a] - rank[b];
}

/** Where a rule comes from, weakest first. `podbot` is Podbot's own protection, which nothing overrides. */
export type RuleLayer = "default" | "global" | "project" | "environment" | "flag" | "podbot";

const layerOrder: readonly RuleLayer[] = ["default", "global", "project", "environment", "flag", "podbot"];

export function compareLayers(a: RuleLayer, b: RuleLayer): number {
  return layerOrder.indexOf(a) - layerOrder.indexOf(b);
}

/** What stands in for a protected path that does not exist, so that it cannot be created inside. */
export type Placeholder = { readonly kind: "directory" } | { readonly kind: "file"; readonly content: string };

/** A directory that begins empty inside and is gone afterwards, for a program that cannot work without writing there. */
export interface Fresh {
  /** Where the host has no such directory, it is made for this program alone. */
  readonly program: string;
  /** Takes the place of the host's, too: then only what other rules name is seen of that. */
  readonly covers?: true;
}

export interface Rule {
  readonly access: Access;
  /** Absolute. A plain path, whatever its letters, unless `glob` says otherwise. */
  readonly pattern: string;
  readonly glob?: true;
  /** As the owner wrote it. */
  readonly written: string;
  readonly layer: RuleLayer;
  /** Who said so, for people: `preset @base`, a file's path, `--rw`. */
  readonly origin: string;
  /** An untrusted rule may take access away, never give it. */
  readonly trusted: boolean;
  /**
   * Takes write access away where something else gave it, and never gives any. Where such a rule points is often
   * for the project to say, by a link or a setting of git's, and the project may be hostile.
   */
  readonly guard?: true;
  /** Held even where the path is missing. */
  readonly placeholder?: Placeholder;
  /** Not the host's own directory but one that Podbot keeps for the sandbox under this name. */
  readonly own?: string;
  readonly fresh?: Fresh;
  /** In a fresh directory the file is a copy, which the program may change: the host's own stays as it is. */
  readonly copied?: true;
}

/** One sentence's worth of a rule, for plans, debug output and denials. */
export function describeRule(rule: Pick<Rule, "access" | "written" | "origin" | "layer">): string {
  return `${rule.access} ${rule.written} (${rule.origin}, ${rule.layer})`;
}
