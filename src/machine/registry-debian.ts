import { join } from "node:path";
import {
  listSettings,
  placeIn,
  type RegistryContext,
  type RegistryUrls,
  readSettings,
  words,
} from "./registry-files.ts";

/** The sources of apt, in both of their forms. */
export function debianUrls(context: RegistryContext): RegistryUrls {
  const directory = placeIn(context, "etc/apt");
  const lists = [join(directory, "sources.list"), ...listSettings(join(directory, "sources.list.d"), [".list"])];
  const sources = listSettings(join(directory, "sources.list.d"), [".sources"]);
  const uris = [
    ...lists.flatMap((file) => lineUris(readSettings(context, file))),
    ...sources.flatMap((file) => stanzaUris(readSettings(context, file))),
  ];
  const urls = uris.flatMap((uri) => mirrorsOf(uri, context));
  return { urls, lacks: urls.length > 0 ? null : "apt has no sources here, so the preset has no hosts" };
}

/** `deb [options] URI suite component…` */
function lineUris(text: string): readonly string[] {
  return [...text.matchAll(/^\s*deb(?:-src)?\s+(?:\[[^\]]*\]\s*)?(\S+)/gm)].map(([, uri]) => uri as string);
}

/** Paragraphs of fields; lines that begin with a blank go on with the field before. */
function stanzaUris(text: string): readonly string[] {
  const stanzas = text.replace(/^#.*\n/gm, "").split(/\n\s*\n/);
  return stanzas
    .filter((stanza) => !/^Enabled:\s*(?:no|false)\b/im.test(stanza))
    .flatMap((stanza) => words(/^URIs:((?:.*\n?)(?:[ \t].*\n?)*)/im.exec(stanza)?.[1]));
}

/** Images for clouds name a file that lists mirrors. */
function mirrorsOf(uri: string, context: RegistryContext): readonly string[] {
  const [, path] = /^mirror\+file:\/*(\/.*)$/.exec(uri) ?? [];
  if (path === undefined) return [uri.replace(/^mirror\+/, "")];
  return readSettings(context, placeIn(context, path))
    .split("\n")
    .flatMap((line) => words(line.replace(/#.*/, "")).slice(0, 1));
}
