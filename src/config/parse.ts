import { extname } from "node:path";
import { ConfigError } from "../errors.ts";
import { isTable, showPath } from "./display.ts";
import { SyntaxProblem } from "./syntax-problem.ts";

/** Parses the content of a configuration file in the format of its name: TOML, JSON with comments, or YAML. What is in it is not looked at here. */
export async function parseConfig(file: string, content: Uint8Array): Promise<Readonly<Record<string, unknown>>> {
  const parse = await parserFor(file);
  try {
    const value = parse(decode(content));
    if (!isTable(value)) throw new SyntaxProblem("is not a table of keys and values");
    return value;
  } catch (error) {
    // A parser that trips over a file in a way of its own has not parsed it either. Its words may quote the file.
    throw unreadable(file, error instanceof SyntaxProblem ? error : new SyntaxProblem("cannot be parsed"));
  }
}

/** Each parser is loaded when a file needs it: the largest takes longer to load than everything else together. */
async function parserFor(file: string): Promise<(text: string) => unknown> {
  switch (extname(file)) {
    case ".toml":
      return (await import("./parse-toml.ts")).parseToml;
    case ".jsonc":
    case ".json":
      return (await import("./parse-jsonc.ts")).parseJsonc;
    default:
      return (await import("./parse-yaml.ts")).parseYaml;
  }
}

function decode(content: Uint8Array): string {
  const nul = content.indexOf(0);
  if (nul !== -1) throw new SyntaxProblem("holds a NUL byte", lineOf(content, nul));
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(content);
  } catch {
    throw new SyntaxProblem("is not valid UTF-8", lineOf(content, firstInvalid(content)));
  }
}

/** The end of the longest prefix that decodes, found by halving. */
function firstInvalid(content: Uint8Array): number {
  const decodes = (end: number) => {
    try {
      new TextDecoder("utf-8", { fatal: true }).decode(content.subarray(0, end), { stream: true });
      return true;
    } catch {
      return false;
    }
  };
  let [good, bad] = [0, content.length];
  while (bad - good > 1) {
    const middle = (good + bad) >> 1;
    if (decodes(middle)) good = middle;
    else bad = middle;
  }
  return good;
}

function lineOf(content: Uint8Array, offset: number): number {
  return content.subarray(0, offset).reduce((line, byte) => (byte === 0x0a ? line + 1 : line), 1);
}

function unreadable(file: string, problem: SyntaxProblem): ConfigError {
  const place = problem.line === undefined ? showPath(file) : `${showPath(file)}:${problem.line}`;
  return new ConfigError("CONFIG_UNREADABLE", `${place} ${problem.message}`, {
    hint: "Correct the file, or move it away to run without it.",
    details: { file, ...(problem.line === undefined ? {} : { line: problem.line }) },
  });
}
