import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../..", import.meta.url));

/** A page of the documentation, by its path in the repository. */
export interface Page {
  readonly path: string;
  readonly text: string;
}

export interface Block {
  /** Page and line, for the names of tests. */
  readonly place: string;
  readonly language: string;
  readonly lines: readonly string[];
}

export function readPages(): readonly Page[] {
  const docs = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" }).map((name) => `docs/${name}`);
  const top = readdirSync(root);
  return [...top, ...docs]
    .filter((path) => path.endsWith(".md"))
    .sort()
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
}

export function pageAt(path: string): Page {
  const page = readPages().find((candidate) => candidate.path === path);
  if (page === undefined) throw new Error(`there is no page ${path}`);
  return page;
}

/** The fenced blocks of all pages. */
export function readBlocks(language: string): readonly Block[] {
  return readPages()
    .flatMap(blocksOf)
    .filter((block) => block.language === language);
}

function blocksOf({ path, text }: Page): readonly Block[] {
  const blocks: { place: string; language: string; lines: string[] }[] = [];
  let open: { place: string; language: string; lines: string[] } | null = null;
  for (const [at, line] of text.split("\n").entries()) {
    const fence = /^```(\w*)$/.exec(line);
    if (open !== null && fence === null) open.lines.push(line);
    else if (open !== null) open = null;
    else if (fence !== null) {
      open = { place: `${path}:${at + 1}`, language: fence[1] as string, lines: [] };
      blocks.push(open);
    }
  }
  return blocks;
}

/** The rows of the table that stands between two comments. */
export function rowsBetween(page: Page, begin: string, end: string): readonly (readonly string[])[] {
  const from = page.text.indexOf(`<!-- ${begin}`);
  const to = page.text.indexOf(`<!-- ${end} -->`);
  if (from < 0 || to < from) throw new Error(`${page.path} has nothing between ${begin} and ${end}`);
  const lines = page.text.slice(from, to).split("\n");
  const rows = lines.filter((line) => line.startsWith("|")).map((line) => line.split("|").slice(1, -1));
  return rows.slice(2).map((cells) => cells.map((cell) => cell.trim()));
}
