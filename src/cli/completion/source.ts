import type { Command, Flag } from "../command.ts";

/** Where the candidates for a value or a word come from. */
export type Source =
  | { readonly kind: "nowhere" | "files" | "directories" | "sessions" }
  | { readonly kind: "choices"; readonly of: readonly string[] };

export function flagSource({ choices, value = "" }: Flag): Source {
  return choices === undefined ? namedSource(value) : { kind: "choices", of: choices };
}

export interface Word {
  readonly name: string;
  readonly optional: boolean;
  /** Whether any number of such words may follow. */
  readonly repeated: boolean;
  readonly source: Source;
}

/**
 * The positional words. A word that the usage line spells in small letters stands for itself
 * (`podbot config show`), and several that it joins by bars are alternatives.
 */
export function positionalWords({ name, usage, words = [], completes }: Command): readonly Word[] {
  const spelled = usage
    .replace(/\[[^\]]*\]/g, " ")
    .replace(`podbot ${name}`, "")
    .split(/\s+/)
    .filter((part) => part !== "");
  return words.map((word, at) => {
    const bare = word.replace(/…?\??$/, "");
    const literals = spelled[at]?.split("|") ?? [];
    const source: Source =
      literals.length > 0 && literals.every((part) => /^[a-z][a-z0-9-]*$/.test(part))
        ? { kind: "choices", of: literals }
        : at === 0 && completes === "session"
          ? { kind: "sessions" }
          : namedSource(bare);
    return { name: bare, optional: word.endsWith("?"), repeated: /…\??$/.test(word), source };
  });
}

function namedSource(name: string): Source {
  switch (name.toUpperCase()) {
    case "PATH":
    case "FILE":
      return { kind: "files" };
    case "DIR":
      return { kind: "directories" };
    default:
      return { kind: "nowhere" };
  }
}
