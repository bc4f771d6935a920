import { type ParseErrorCode, printParseErrorCode, visit } from "jsonc-parser";
import { deepest, isUnsafeName, problems, SyntaxProblem } from "./syntax-problem.ts";

/** Parses JSON with comments and trailing commas. An empty file is an empty table, as in the other formats. */
export function parseJsonc(text: string): unknown {
  const root: Open = { kind: "list", items: [] };
  const open: Open[] = [root];

  const add = (value: unknown) => {
    const top = open.at(-1) as Open;
    if (top.kind === "list") top.items.push(value);
    else top.table[top.name] = value;
  };
  const begin = (collection: Open, value: unknown, line: number) => {
    if (open.length > deepest) throw new SyntaxProblem(problems.depth, line + 1);
    add(value);
    open.push(collection);
  };

  visit(
    text,
    {
      onObjectBegin: (_offset, _length, line) => {
        const table: Record<string, unknown> = Object.create(null);
        begin({ kind: "table", table, name: "" }, table, line);
      },
      onObjectProperty: (name, _offset, _length, line) => {
        const top = open.at(-1) as Extract<Open, { kind: "table" }>;
        if (isUnsafeName(name)) throw new SyntaxProblem(problems.unsafeName, line + 1);
        if (name in top.table) throw new SyntaxProblem(problems.duplicate, line + 1);
        top.name = name;
      },
      onObjectEnd: () => {
        open.pop();
      },
      onArrayBegin: (_offset, _length, line) => {
        const items: unknown[] = [];
        begin({ kind: "list", items }, items, line);
      },
      onArrayEnd: () => {
        open.pop();
      },
      onLiteralValue: add,
      onError: (code, _offset, _length, line) => {
        throw new SyntaxProblem(`is not valid JSON: ${wordsFor(code)}`, line + 1);
      },
    },
    { allowTrailingComma: true, allowEmptyContent: true },
  );
  return root.items.length === 0 ? {} : root.items[0];
}

/** A collection whose end has not been seen. */
type Open =
  | { readonly kind: "list"; readonly items: unknown[] }
  | { readonly kind: "table"; readonly table: Record<string, unknown>; name: string };

/** `CommaExpected` as `comma expected`. */
function wordsFor(code: ParseErrorCode): string {
  return printParseErrorCode(code)
    .replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
    .trim();
}
