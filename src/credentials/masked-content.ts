import type { MaskedFile } from "./masked-files.ts";

/** The surrogate of a token, by the way to its field; null where there can be none: then the field is left out. */
export type MaskToken = (real: string, way: readonly string[]) => string | null;

/** What the box gets instead of a file with credentials; null where it cannot be read as what it should be. */
export function maskContent(file: MaskedFile, content: string, mask: MaskToken): string | null {
  const judge = judgeOf(file, mask);
  return file.format === "json" ? maskJson(content, judge) : maskLines(content, judge);
}

/** What to write for a text in a field; null: nothing. */
type Judge = (way: readonly string[], text: string) => string | null;

function judgeOf({ tokens, kept }: MaskedFile, mask: MaskToken): Judge {
  const isOne = (patterns: readonly string[], way: readonly string[]) => patterns.some((one) => leadsTo(one, way));
  return (way, text) => {
    // Empty text says that there is no token.
    if (text === "") return text;
    if (isOne(tokens, way)) return mask(text, way);
    return isOne(kept, way) ? text : null;
  };
}

function leadsTo(pattern: string, way: readonly string[]): boolean {
  const parts = pattern.split(".");
  const isOpen = parts.at(-1) === "**";
  const names = isOpen ? parts.slice(0, -1) : parts;
  if (isOpen ? way.length <= names.length : way.length !== names.length) return false;
  return names.every((name, at) => {
    const found = way[at] as string;
    return name === "~" ? !tellsSecret.test(found) : name === "*" || name === found;
  });
}

/** Where programs keep secrets in variables, their names say so; addresses of proxies have them within. */
const tellsSecret = /KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|HEADERS|PROXY/i;

function maskJson(content: string, judge: Judge): string | null {
  const value = parse(content);
  if (typeof value !== "object" || value === null) return null;
  return `${JSON.stringify(maskValue(value, [], judge) ?? {}, null, 2)}\n`;
}

function parse(content: string): unknown {
  try {
    return JSON.parse(content);
  } catch {
    return null;
  }
}

/** Undefined where nothing of it may be seen: settings of which only the shell is left make no sense to anybody. */
function maskValue(value: unknown, way: readonly string[], judge: Judge): unknown {
  if (typeof value === "string") return judge(way, value) ?? undefined;
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).flatMap(([name, inner]) => {
    const masked = maskValue(inner, [...way, name], judge);
    return masked === undefined ? [] : [[name, masked] as const];
  });
  if (entries.length === 0 && Object.keys(value).length > 0) return undefined;
  return Array.isArray(value) ? entries.map(([, inner]) => inner) : Object.fromEntries(entries);
}

const line =
  /^(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)([ \t]*[=:][ \t]*)(?:"([^"\\]*)"|'([^'\\]*)'|([^\s"'#][^\s#]*))[ \t]*$/;

/** Lines of any other form, such as values of several lines, are left out. */
function maskLines(content: string, judge: Judge): string {
  const lines = content.split(/\r?\n/).flatMap((text) => {
    const [, name, separator, double, single, bare] = line.exec(text) ?? [];
    if (name === undefined) return [];
    const value = judge([name], (double ?? single ?? bare) as string);
    return value === null ? [] : [`${name}${separator}${bare === undefined ? JSON.stringify(value) : value}`];
  });
  return lines.map((text) => `${text}\n`).join("");
}
