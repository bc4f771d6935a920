/** For bash and zsh. */
export function quotePosix(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** For fish, where a backslash escapes itself and the quote. */
export function quoteFish(text: string): string {
  return `'${text.replace(/[\\']/g, "\\$&")}'`;
}

/** Descriptions are drawn on a terminal, one a line. */
export function oneLine(text: string): string {
  return text.replace(/[\s\p{Cc}]+/gu, " ").trim();
}

export function indent(depth: number, lines: readonly string[]): string[] {
  return lines.map((line) => `${"  ".repeat(depth)}${line}`);
}

/** A template of shell code, in which backslashes are the shell's own, save those that keep a `$` or a backtick from us. */
export function shell(parts: TemplateStringsArray, ...values: readonly string[]): string {
  return String.raw({ raw: parts.raw.map((part) => part.replace(/\\([$`])/g, "$1")) }, ...values);
}
