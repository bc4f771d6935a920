/** One setting of a git configuration file; names in lower case, as git compares them. */
export interface GitSetting {
  readonly section: string;
  readonly key: string;
  readonly value: string;
}

/** Every setting of a file, in order: what git would read, comments, quotes and continued lines understood. */
export function parseGitConfig(text: string): readonly GitSetting[] {
  const settings: GitSetting[] = [];
  let section = "";
  for (const line of text.replace(/\\\r?\n/g, "").split(/\r?\n/)) {
    const header = /^\s*\[\s*([A-Za-z0-9.-]+)(?:\s+"(?:[^"\\]|\\.)*")?\s*\]/.exec(line);
    if (header) section = (header[1] as string).toLowerCase();
    const pair = /^\s*([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?$/s.exec(header ? line.slice(header[0].length) : line);
    if (pair) settings.push({ section, key: (pair[1] as string).toLowerCase(), value: readValue(pair[2] ?? "") });
  }
  return settings;
}

/** Quotes group, backslashes escape, `#` and `;` end the value outside of quotes. */
function readValue(text: string): string {
  let value = "";
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at] as string;
    if (character === "\\") value += escaped(text[++at] ?? "");
    else if (character === '"') quoted = !quoted;
    else if (!quoted && (character === "#" || character === ";")) break;
    else value += character;
  }
  return quoted ? value : value.trimEnd();
}

function escaped(character: string): string {
  return { n: "\n", t: "\t", b: "\b" }[character] ?? character;
}
