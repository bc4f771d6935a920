/** Why a file could not be parsed. Thrown by the parsers and turned into a ConfigError, with the file's name, by their caller. */
export class SyntaxProblem extends Error {
  /** Counted from 1, absent where the parser does not know it. */
  readonly line: number | undefined;

  constructor(reason: string, line?: number) {
    super(reason);
    this.line = line;
  }
}

/** Deeper than any key goes. Parsers recurse, so the depth of a hostile file must be bounded before its end is seen. */
export const deepest = 32;

/** Names that reach an object's prototype wherever one is built from them carelessly. None is a key or could become one. */
export function isUnsafeName(name: string): boolean {
  return name === "__proto__" || name === "constructor";
}

export const problems = {
  depth: `is nested more than ${deepest} levels deep`,
  duplicate: "has the same key twice",
  unsafeName: "has a key called __proto__ or constructor",
} as const;
