import { join, resolve } from "node:path";
import { findConfigFile, readConfigFile, requireConfigFile } from "./config-file.ts";
import { environmentSource, readEnvironment } from "./environment.ts";
import { defaultLayer, mergeLayers } from "./merge.ts";
import { globalConfigDir } from "./paths.ts";
import { configError, type Problem } from "./problem.ts";
import { checkRules } from "./rules.ts";
import type { Config, Layer, LoadedConfig, LoadOptions, PartialConfig, ProjectFile } from "./types.ts";
import { validateLayer } from "./validate.ts";
import { findWidenings, untrustedError } from "./widening.ts";

const flagSource = "command line";
/** What a command says by itself. */
export const commandSource = "this command";

/**
 * Reads every layer and merges them. All that is wrong, in whatever layer, is thrown as one ConfigError. The parsers
 * and the trust records are loaded only when there is a file that needs them: most runs have none.
 */
export async function loadConfig(options: LoadOptions): Promise<LoadedConfig> {
  const { env, overrides = {} } = options;
  const global = findGlobalFile(options);
  const project = findProjectFile(options);

  const read = [
    ...(global === undefined ? [] : [await readLayer("global", global)]),
    ...(project === undefined ? [] : [await readLayer("project", project)]),
  ];
  const variables = readEnvironment(env);
  const flags = validateLayer({ ...overrides }, { source: flagSource, typed: true });

  const above: readonly Layer[] = [
    { name: "environment", source: environmentSource, trusted: true, value: variables.value },
    { name: "flag", source: flagSource, trusted: true, value: flags.value },
  ];
  const said = [
    defaultLayer(),
    ...read.map(({ layer }) => layer),
    ...above.filter(({ value }) => Object.keys(value).length > 0),
  ];
  const layers = options.complete === undefined ? said : complete(said, options.complete);
  const problems = [...read.flatMap((file) => file.problems), ...variables.problems, ...flags.problems];

  const { config, origins } = mergeLayers(layers);
  const rules = checkRules(config, origins, new Set(problems.flatMap(({ field }) => field ?? [])));
  const all = [...problems, ...rules.problems];
  if (all.length > 0) throw configError(all);

  const discovered = read.find(({ layer }) => !layer.trusted);
  const judged = discovered === undefined ? undefined : await judgeProject(discovered, layers, options);
  return {
    config,
    layers: judged?.trusted ? layers.map((layer) => ({ ...layer, trusted: true })) : layers,
    origins,
    warnings: [...variables.warnings, ...rules.warnings],
    files: read.map(({ layer }) => layer.source),
    ...(judged === undefined ? {} : { project: judged }),
  };
}

/** With a last layer of what the command itself says. */
function complete(layers: readonly Layer[], add: (config: Config) => PartialConfig): readonly Layer[] {
  const value = add(mergeLayers(layers).config);
  if (Object.keys(value).length === 0) return layers;
  return [...layers, { name: "flag", source: commandSource, trusted: true, value }];
}

interface NamedFile {
  readonly file: string;
  readonly trusted: boolean;
}

function findGlobalFile({ cwd, env, home }: LoadOptions): NamedFile | undefined {
  const named = env["PODBOT_CONFIG_PATH"];
  const file = named
    ? requireConfigFile(resolve(cwd, named), "PODBOT_CONFIG_PATH")
    : findConfigFile(globalConfigDir(env, home));
  return file === undefined ? undefined : { file, trusted: true };
}

function findProjectFile({ cwd, configFile }: LoadOptions): NamedFile | undefined {
  if (configFile !== undefined) return { file: requireConfigFile(resolve(cwd, configFile), "--config"), trusted: true };
  const file = findConfigFile(join(cwd, ".podbot"));
  return file === undefined ? undefined : { file, trusted: false };
}

interface FileLayer {
  readonly layer: Layer;
  readonly content: Uint8Array;
  readonly problems: readonly Problem[];
}

async function readLayer(name: "global" | "project", { file, trusted }: NamedFile): Promise<FileLayer> {
  const content = readConfigFile(file);
  const { parseConfig } = await import("./parse.ts");
  const { value, problems } = validateLayer(await parseConfig(file, content), { source: file });
  return { layer: { name, source: file, trusted, value }, content, problems };
}

/** Throws unless the project file asks for nothing, or the owner has trusted it, or the caller only wants to look. */
async function judgeProject(
  { layer, content }: FileLayer,
  layers: readonly Layer[],
  options: LoadOptions,
): Promise<ProjectFile> {
  const { canonicalProjectFile, hashOf, isTrusted } = await import("./trust.ts");
  const below = mergeLayers(layers.slice(0, layers.indexOf(layer))).config;
  const widenings = findWidenings(layer.value, below);
  const named = { file: canonicalProjectFile(layer.source), hash: hashOf(content) };
  const trusted = isTrusted(named, options);
  if (!trusted && widenings.length > 0 && options.acceptProject !== true) throw untrustedError(named.file, widenings);
  return { ...named, trusted, widenings };
}
