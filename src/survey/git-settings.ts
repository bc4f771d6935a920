import { PolicyError } from "../errors.ts";
import { nameOf, parentOf } from "../policy/paths.ts";
import { type GitSetting, parseGitConfig } from "./git-config.ts";
import { configAt, tooMany } from "./git-files.ts";
import type { Reader } from "./reader.ts";
import { findWay, refuseUnreadable, type Way } from "./way.ts";

/** A setting with the file that says it, under the name by which git opens it. */
export type FileSetting = GitSetting & { readonly file: string };

export interface Settings {
  readonly all: readonly FileSetting[];
  /** How git gets to each file that was included. */
  readonly included: readonly Way[];
  /** How git gets to each file that it reads by itself. */
  readonly read: readonly Way[];
}

/** Including files include further ones, and one of them could do so for ever. */
const mostFiles = 500;

/**
 * Everything that git would read as configuration, and what that includes, under every condition: which of them hold is
 * for a branch, a remote or a directory to say, and an agent may change those. git follows ten files deep, and refuses
 * to work with more; here each file is read once, so that depth does not matter.
 */
export function readSettings(
  own: readonly string[],
  everybodys: readonly string[],
  home: string,
  reader: Reader,
): Settings {
  const all: FileSetting[] = [];
  const included: Way[] = [];
  const read: Way[] = [];
  const seen = new Set<string>();
  const ahead = [...own, ...everybodys].map((file) => ({ file, from: null as string | null }));
  for (let next = ahead.shift(); next !== undefined; next = ahead.shift()) {
    const { from } = next;
    const way = findWay(next.file, reader);
    (from === null ? read : included).push(way);
    if (way.end === null) continue;
    // What it includes is relative to the directory in which git finds it, be it as a link.
    const file = `${findWay(parentOf(next.file), reader).end}/${nameOf(next.file)}`;
    if (seen.has(file)) continue;
    seen.add(file);
    if (seen.size > mostFiles) throw tooMany(from ?? file, mostFiles, "included configurations");
    const isEverybodys = from === null && everybodys.includes(next.file);
    const settings = parseGitConfig(configAt(way.end, isEverybodys)).map((setting) => ({ ...setting, file }));
    all.push(...settings);
    ahead.push(
      ...settings.filter(isInclude).map(({ value }) => ({ file: pathOf(value, parentOf(file), home), from: file })),
    );
  }
  return { all, included, read };
}

function isInclude({ section, key, value }: GitSetting): boolean {
  return (section === "include" || section === "includeif") && key === "path" && value !== "";
}

/** What git makes of a path in a setting. `..` is left in it, since the kernel resolves links before. */
export function pathOf(written: string, from: string, home: string): string {
  const path = written.replace(/^:\(optional\)/, "");
  refuseUnreadable(path, path);
  if (path === "~") return home;
  if (path.startsWith("~/")) return `${home}/${path.slice(2)}`;
  if (path.startsWith("~")) {
    throw new PolicyError("PATH_REFUSED", `git is told to obey ${path}, and Podbot does not know where ~user leads.`, {
      hint: "Write the absolute path in git's configuration.",
      details: { path },
    });
  }
  // Where git itself is installed.
  if (path.startsWith("%(prefix)/")) return `/usr/${path.slice("%(prefix)/".length)}`;
  return path.startsWith("/") ? path : `${from}/${path}`;
}
