import {
  Composer,
  type Document,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  type ParsedNode,
  Parser,
  type Scalar,
  type ScalarTag,
  type YAMLError,
} from "yaml";
import { deepest, isUnsafeName, problems, SyntaxProblem } from "./syntax-problem.ts";

/**
 * Parses YAML 1.2. `!secret NAME` and `!secret? NAME` become the text that the other formats write. Anchors, aliases
 * and other tags are refused: no key needs them, and without them a short file cannot stand for a huge one.
 */
export function parseYaml(text: string): unknown {
  const fail: Fail = (reason, offset) => {
    throw new SyntaxProblem(reason, text.slice(0, offset).split("\n").length);
  };
  let first: Document.Parsed | undefined;
  for (const document of makeComposer().compose(tokensOf(text, fail), true, text.length)) {
    if (first !== undefined) fail("holds more than one YAML document", document.range[0]);
    const [error] = [...document.errors, ...document.warnings];
    if (error !== undefined) fail(wordsFor(error), error.pos[0]);
    first = document as Document.Parsed;
  }
  if (first?.directives.yaml.version !== "1.2") return fail("asks for another YAML than 1.2", 0);
  const value = toValue(first.contents, fail);
  return value === null ? {} : value;
}

type Fail = (reason: string, offset: number) => never;

/** A configuration of this many tokens is none. The parser makes several objects of each, and a long error of each wrong one. */
const mostTokens = 50_000;

/**
 * The parser's tokens, read only as far as the file stays within bounds. The composer recurses: on a deep file it
 * would use up the stack, which can take the process down instead of throwing.
 */
function* tokensOf(text: string, fail: Fail) {
  const parser = new Parser();
  let count = 0;
  for (const lexeme of new Lexer().lex(text)) {
    yield* parser.next(lexeme);
    // Each level of ours is at most two of the parser's: a collection, and the item in it.
    if (parser.stack.length > 2 * deepest) fail(problems.depth, parser.offset);
    if (++count > mostTokens) fail("is too long for a configuration", parser.offset);
  }
  yield* parser.end();
}

function makeComposer(): Composer<ParsedNode> {
  return new Composer({
    version: "1.2",
    schema: "core",
    customTags: [secretTag("!secret"), secretTag("!secret?")],
    // Every key is a name: the commands `true` and `null` exist.
    stringKeys: true,
    // Checked below instead: the parser's own check compares all pairs of keys.
    uniqueKeys: false,
    prettyErrors: false,
  });
}

function secretTag(tag: string): ScalarTag {
  return { tag, resolve: (name) => `${tag} ${name}` };
}

function toValue(node: ParsedNode | null, fail: Fail): unknown {
  if (node === null) return null;
  if (node.tag !== undefined && !knownTag.test(node.tag)) fail(unknownTag, node.range[0]);
  if (isScalar(node)) return node.value;
  if (isSeq(node)) return node.items.map((item) => toValue(item, fail));
  if (!isMap(node)) return fail("uses an alias (*name); write the value out", node.range[0]);
  const table: Record<string, unknown> = Object.create(null);
  for (const { key, value } of node.items) {
    // `stringKeys` has made sure of it.
    const { value: name } = key as Scalar.Parsed & { readonly value: string };
    if (isUnsafeName(name)) fail(problems.unsafeName, key.range[0]);
    if (name in table) fail(problems.duplicate, key.range[0]);
    table[name] = toValue(value, fail);
  }
  return table;
}

const knownTag = /^(?:!secret\??|tag:yaml\.org,2002:(?:str|int|float|bool|null|map|seq))$/;
const unknownTag = "uses an unknown tag; the only ones are !secret and !secret?";

/** In words of our own, since the parser's quote the file. */
function wordsFor(error: YAMLError): string {
  return words[error.code] ?? `is not valid YAML: ${error.code.toLowerCase().replaceAll("_", " ")}`;
}

const words: Partial<Record<YAMLError["code"], string>> = {
  BAD_COLLECTION_TYPE: unknownTag,
  BAD_DQ_ESCAPE: "is not valid YAML: unknown escape after a backslash in double quotes",
  BAD_INDENT: "is not valid YAML: wrong indentation, or a bracket that is not closed",
  BAD_SCALAR_START: "is not valid YAML: a value that begins with this character needs quotes",
  BLOCK_AS_IMPLICIT_KEY: "is not valid YAML: two keys on one line",
  MISSING_CHAR: "is not valid YAML: a quote, bracket, comma or colon is missing",
  NON_STRING_KEY: "is not valid YAML for a configuration: a key must be plain text",
  TAB_AS_INDENT: "is not valid YAML: tabs cannot indent",
  TAG_RESOLVE_FAILED: unknownTag,
  UNEXPECTED_TOKEN: "is not valid YAML: something stands where it cannot",
};
