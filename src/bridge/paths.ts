import type { BridgePaths } from "./policy.ts";
import { decodeString } from "./scanner.ts";
import type { Leaf } from "./shape.ts";

/** The leaves of one direction: a path, and a uri of a file. */
export interface PathLeaves {
  readonly path: Leaf;
  readonly uri: Leaf;
}

export function pathLeaves({ outside, inside }: BridgePaths, direction: "to-agent" | "to-client"): PathLeaves {
  const [from, to] = direction === "to-agent" ? [outside, inside] : [inside, outside];
  return {
    path: translating((path) => translatePath(path, from, to)),
    uri: translating((uri) => translateUri(uri, from, to)),
  };
}

/** By whole components: what lies beside `from` and begins like it is somewhere else. */
export function translatePath(path: string, from: string, to: string): string {
  const above = from.replace(/\/+$/, "");
  if (path !== from && path !== above && !path.startsWith(`${above}/`)) return path;
  return `${to.replace(/\/+$/, "")}${path.slice(above.length)}` || "/";
}

/** The same for `file:` uris, of which no part is spelled anew but the one that is replaced. */
export function translateUri(uri: string, from: string, to: string): string {
  const match = /^(file:\/\/(?:localhost)?)(\/[^?#]*)(.*)$/is.exec(uri);
  if (match === null) return uri;
  const [, scheme, path, rest] = match as unknown as [string, string, string, string];
  const above = components(from);
  const names = path.split("/").slice(1);
  if (names.length < above.length || above.some((name, index) => decodeComponent(names[index] as string) !== name))
    return uri;
  const translated = [...components(to).map(encodeURIComponent), ...names.slice(above.length)];
  return `${scheme}/${translated.join("/")}${rest}`;
}

function components(path: string): string[] {
  return path.split("/").filter((name) => name !== "");
}

function decodeComponent(name: string): string | null {
  try {
    return decodeURIComponent(name);
  } catch {
    return null;
  }
}

function translating(translate: (value: string) => string): Leaf {
  return (json) => {
    if (!json.startsWith('"')) return undefined;
    const value = decodeString(json);
    const translated = translate(value);
    return translated === value ? undefined : Buffer.from(JSON.stringify(translated)).toString("latin1");
  };
}
