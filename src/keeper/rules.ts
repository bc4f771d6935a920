import { existsSync } from "node:fs";
import type { Config, Layer } from "../config/types.ts";
import type { Request } from "../plan/request.ts";
import { credentialStores, relocatedStores } from "../policy/credentials.ts";
import { toPattern } from "../policy/glob.ts";
import { expandPath, isWithin, parentOf, type Standpoint } from "../policy/paths.ts";
import { choosePresets, type Preset } from "../policy/presets.ts";
import type { Access, Rule } from "../policy/rule.ts";
import { resolved } from "./standpoint.ts";

/** Every path rule that a configuration amounts to, presets first. */
export function collectRules(
  layers: readonly Layer[],
  presets: readonly Preset[],
  root: Request["root"],
  from: Standpoint,
): readonly Rule[] {
  return [
    ...presets.flatMap((preset) => presetRules(preset, root, from)),
    ...layers.flatMap((layer) => layerRules(layer, from)),
  ];
}

export function presetsOf(layers: readonly Layer[]): readonly Preset[] {
  return choosePresets(layers.flatMap(({ value }) => value.filesystem?.presets ?? []));
}

/**
 * Whether an agent may write at a path, before anything is planned: rules that take it away again are not looked at.
 * Where a rule has a directory of the sandbox's own, the host's stays as it is.
 */
export function writableBy(
  layers: readonly Layer[],
  root: Request["root"],
  from: Standpoint,
  kept: readonly string[],
): (path: string) => boolean {
  const listRoots = (): readonly string[] => {
    const rules = collectRules(layers, presetsOf(layers), root, from);
    const given = rules.filter(({ access, own, fresh }) => access === "rw" && own === undefined && fresh === undefined);
    // Of a pattern, all that lies below the last directory that it names in full.
    const named = given.map(({ pattern, glob }) => (glob ? parentOf(pattern.replace(/[*?[].*$/s, "")) : pattern));
    return [from.cwd, ...named, ...kept].flatMap((path) => [path, resolved(path)]);
  };
  // Most runs never ask.
  let roots: readonly string[] | undefined;
  return (path) => {
    roots ??= listRoots();
    return roots.some((writable) => isWithin(path, writable));
  };
}

/** In a minimal root and in an image there is no home of the host's, so nothing in it needs a rule. */
function presetRules(preset: Preset, root: Request["root"], from: Standpoint): readonly Rule[] {
  return preset.entries
    .filter(({ path }) => root === "host" || !path.startsWith("~"))
    .map(({ access, path, own, fresh, copied, guard }) => ({
      access,
      ...toPattern(path, from),
      written: path,
      layer: "default",
      origin: `preset ${preset.name}`,
      trusted: true,
      ...(own === undefined ? {} : { own }),
      ...(fresh === undefined ? {} : { fresh }),
      ...(copied === undefined ? {} : { copied }),
      ...(guard === undefined ? {} : { guard }),
    }));
}

function layerRules({ name, source, trusted, value }: Layer, from: Standpoint): readonly Rule[] {
  const levels: readonly Access[] = ["rw", "ro", "exclude"];
  return levels.flatMap((access) =>
    (value.filesystem?.[access] ?? []).map((written): Rule => {
      const origin = name === "flag" ? `--${access}` : source;
      return { access, ...toPattern(written, from), written, layer: name, origin, trusted };
    }),
  );
}

/** Stores of the same user that lie elsewhere: in the home that the system knows, or where a variable says. */
export function elsewhereRules(
  from: Standpoint,
  systemHome: string,
  env: Readonly<Record<string, string | undefined>>,
): readonly Rule[] {
  const hidden = (pattern: string, written: string): Rule => ({
    access: "exclude",
    pattern,
    written,
    layer: "default",
    origin: "preset @base",
    trusted: true,
  });
  const relocated = Object.entries(relocatedStores).flatMap(([name, places]) =>
    (env[name] ?? "")
      .split(":")
      .filter((place) => place.startsWith("/"))
      .flatMap((place) => places.map((path) => hidden(expandPath(place + path, from), `$${name}${path}`))),
  );
  if (systemHome === from.home || systemHome === "/" || !systemHome.startsWith("/")) return relocated;
  return [...relocated, ...credentialStores.map((path) => hidden(`${systemHome}/${path}`, `${systemHome}/${path}`))];
}

/** The values of masked secrets stay outside, and so do the files that they are read from. */
export function secretRules(secrets: Config["secrets"], home: string): readonly Rule[] {
  return Object.entries(secrets).flatMap(([name, { file, hosts }]): readonly Rule[] => {
    if (file === undefined || hosts === undefined) return [];
    const pattern = expandPath(file, { home, cwd: home });
    const origin = `the masked secret ${name}`;
    return [{ access: "exclude", pattern, written: file, layer: "podbot", origin, trusted: true }];
  });
}

/** Where keys lie that no sandbox sees, those of later neither: a file that takes another's place is not hidden with it. */
export function keysDirectory(configDirectory: string): string {
  return `${configDirectory}/keys`;
}

/** Whoever reads the App's key can mint tokens for everything that the App may do. */
export function keyRules(
  { private_key_path: path }: Config["github"],
  home: string,
  configDirectory: string,
): readonly Rule[] {
  const hidden = (written: string): Rule => {
    const pattern = expandPath(written, { home, cwd: home });
    const origin = "the GitHub App's private key";
    return { access: "exclude", pattern, written, layer: "podbot", origin, trusted: true };
  };
  // Most have none; who names a key that is not there has it misspelt.
  const directories = [keysDirectory(configDirectory)].filter((directory) => existsSync(directory));
  return [...directories, ...(path === undefined ? [] : [path])].map(hidden);
}

/**
 * What belongs to sessions is nobody's business in any of them: what other agents printed, and sockets by which
 * keepers are told what to do.
 */
export function sessionRules(directories: readonly string[]): readonly Rule[] {
  return directories.map((pattern) => ({
    access: "exclude",
    pattern,
    written: pattern,
    layer: "podbot",
    origin: "what Podbot keeps of sessions",
    trusted: true,
  }));
}

/** What nothing inside may ever change, whoever asks: what Podbot itself obeys and executes outside. */
export function ownRules(
  from: Standpoint,
  places: {
    readonly configDirectory: string;
    readonly stateDirectories: readonly string[];
    readonly configFiles: readonly string[];
    readonly installation: readonly string[];
    /** Scripts that stand in for commands. */
    readonly scripts: readonly string[];
  },
): readonly Rule[] {
  const directory = { kind: "directory" } as const;
  const rule = (pattern: string): Rule => ({
    access: "ro",
    pattern,
    written: pattern,
    layer: "podbot",
    origin: "Podbot obeys it outside",
    trusted: true,
    guard: true,
  });
  return [
    { ...rule(`${from.cwd}/.podbot`), placeholder: directory },
    { ...rule(places.configDirectory), placeholder: directory },
    ...places.stateDirectories.map((path) => ({ ...rule(path), placeholder: directory })),
    ...[...places.configFiles, ...places.installation, ...places.scripts].map(rule),
  ];
}
