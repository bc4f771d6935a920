import type { Layer } from "../config/types.ts";
import { credentialStores, relocatedStores } from "../policy/credentials.ts";
import { toPattern } from "../policy/glob.ts";
import { expandPath, type Standpoint } from "../policy/paths.ts";
import { choosePresets, type Preset } from "../policy/presets.ts";
import type { Access, Rule } from "../policy/rule.ts";

/** Every path rule that a configuration amounts to, presets first. */
export function collectRules(
  layers: readonly Layer[],
  presets: readonly Preset[],
  root: "host" | "minimal",
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

/** In a minimal root there is no home of the host's, so nothing in it needs a rule. */
function presetRules(preset: Preset, root: "host" | "minimal", from: Standpoint): readonly Rule[] {
  return preset.entries
    .filter(({ path }) => root === "host" || !path.startsWith("~"))
    .map(({ access, path, own, guard }) => ({
      access,
      ...toPattern(path, from),
      written: path,
      layer: "default",
      origin: `preset ${preset.name}`,
      trusted: true,
      ...(own === undefined ? {} : { own }),
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
