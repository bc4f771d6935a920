/** One setting of a git configuration file; names in lower case, as git compares them. */
export interface GitSetting {
  readonly section: string;
  /** As it is written: `origin` of `[remote "origin"]`. Absent where there is none. */
  readonly subsection?: string;
  readonly key: string;
  readonly value: string;
}

/** Every setting of a file, in order, as git reads it: comments, quotes, escapes and continued lines understood. */
export function parseGitConfig(text: string): readonly GitSetting[] {
  const settings: GitSetting[] = [];
  let section: Pick<GitSetting, "section" | "subsection"> = { section: "" };
  let at = 0;
  while (at < text.length) {
    const header = matchAt(/[ \t\r]*\[[ \t\r]*([A-Za-z0-9.-]+)(?:[ \t\r]+"((?:[^"\\\n]|\\.)*)")?[ \t]*\]/y, text, at);
    const key = matchAt(/[ \t\r]*([A-Za-z][A-Za-z0-9-]*)[ \t]*(=?)[ \t]*/y, text, at);
    if (header) {
      const subsection = header[2]?.replace(/\\(.)/g, "$1");
      section = { section: (header[1] as string).toLowerCase(), ...(subsection === undefined ? {} : { subsection }) };
      at += header[0].length;
    } else if (key) {
      const read = key[2] === "=" ? readValue(text, at + key[0].length) : { value: "", end: lineEnd(text, at) };
      settings.push({ ...section, key: (key[1] as string).toLowerCase(), value: read.value });
      at = read.end;
    } else at = lineEnd(text, at);
  }
  return settings;
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

function lineEnd(text: string, at: number): number {
  const end = text.indexOf("\n", at);
  return end < 0 ? text.length : end + 1;
}

/** Up to the end of its line: quotes group, backslashes escape or continue, `#` and `;` begin a comment. */
function readValue(text: string, from: number): { readonly value: string; readonly end: number } {
  let value = "";
  let spaces = "";
  let quoted = false;
  for (let at = from; at < text.length; at++) {
    const character = text[at] as string;
    if (character === "\n") return { value, end: at + 1 };
    if (!quoted && (character === "#" || character === ";")) return { value, end: lineEnd(text, at) };
    if (!quoted && (character === " " || character === "\t" || character === "\r")) {
      // Kept only if something follows, be it a quote.
      if (value !== "") spaces += character;
      continue;
    }
    value += spaces;
    spaces = "";
    if (character === '"') quoted = !quoted;
    else if (character !== "\\") value += character;
    else {
      at += text.startsWith("\r\n", at + 1) ? 2 : 1;
      value += escaped(text[at] ?? "");
    }
  }
  return { value, end: text.length };
}

function escaped(character: string): string {
  return { n: "\n", t: "\t", b: "\b", "\n": "" }[character] ?? character;
}
