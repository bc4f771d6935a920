import { parse, TomlError } from "smol-toml";
import { deepest, problems, SyntaxProblem } from "./syntax-problem.ts";

export function parseToml(text: string): unknown {
  try {
    // Integers that a number cannot hold become bigints, so that validation refuses them like any other wrong value.
    return parse(text, { integersAsBigInt: "asNeeded", unsafeKeyBehaviour: "throw", maxDepth: deepest });
  } catch (error) {
    if (error instanceof TomlError) throw new SyntaxProblem(reasonOf(error), error.line);
    throw error;
  }
}

/** The parser's own sentence without the lines of the file that it quotes: they may hold a secret, or a megabyte. */
function reasonOf(error: TomlError): string {
  const [sentence = ""] = error.message.replace(/^Invalid TOML document: /, "").split("\n", 1);
  if (sentence.includes("unsafe property")) return problems.unsafeName;
  if (sentence.includes("excessively nested")) return problems.depth;
  if (sentence.includes("already defined")) return problems.duplicate;
  return `is not valid TOML: ${sentence}`;
}
