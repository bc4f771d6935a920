import { adapterOf } from "../agents/adapter.ts";
import { requireAgent } from "../agents/command.ts";
import { agents as knownAgents } from "../agents/table.ts";
import { loadConfig } from "../config/load.ts";
import type { PartialConfig } from "../config/types.ts";
import type { EngineClient } from "../engine/client.ts";
import { inspectImage } from "../engine/images.ts";
import { EngineError, UsageError } from "../errors.ts";
import { type BuiltImage, buildOn, type ImageEvent } from "../image/build.ts";
import type { ImageAgent } from "../image/recipe.ts";
import { describeImage, type ImageDescription } from "../image/show.ts";
import { findEngine, trustedEnvironment } from "./engine.ts";
import { noteOwnImage, ownImage } from "./own-image.ts";
import { placesOf } from "./places.ts";
import { homeOf } from "./standpoint.ts";

/** Which image, and of whose engine. */
export interface ImageRequest {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Default: `localhost/podbot:latest`. */
  readonly tag?: string;
  /** A configuration file instead of the project's own; trusted. */
  readonly configFile?: string;
  /** The last layer of the configuration: `engine_socket` names the engine. */
  readonly config?: PartialConfig;
  readonly signal?: AbortSignal;
}

export interface BuildRequest extends ImageRequest {
  /** Names of known agents. Default: Claude Code and Codex. */
  readonly agents?: readonly string[];
  /**
   * What to build on: the name of an image of Debian, `debian` for a root that is made here, or `auto`, the default:
   * Debian's public image, and such a root where that cannot be had.
   */
  readonly base?: string;
  /** Take nothing from earlier builds. Default: false. */
  readonly fresh?: boolean;
  /** Let the build use the machine's own network. Default: only where a proxy listens on its loopback. */
  readonly hostNetwork?: boolean;
  readonly onEvent?: (event: ImageEvent) => void;
}

const defaultAgents = ["claude", "codex"];

/** Builds the image that agents work in. Where one of the very same is there already, nothing is done. */
export async function buildImage(request: BuildRequest): Promise<BuiltImage> {
  const tag = tagOf(request);
  const agents = chooseAgents(request.agents ?? defaultAgents);
  const env = trustedEnvironment(request.env);
  using engine = await openImageEngine(request);
  const built = await buildOn(engine.client, {
    tag,
    agents,
    base: request.base ?? "auto",
    fresh: request.fresh ?? false,
    hostNetwork: request.hostNetwork ?? false,
    host: { env, home: homeOf(env) },
    flavour: engine.flavour,
    report: request.onEvent ?? (() => {}),
    signal: request.signal,
  });
  if (tag === ownImage) noteOwnImage(placesOf(env).state, Object.keys(built.agents));
  return built;
}

/** What is in an image, as its labels say. */
export async function showImage(request: ImageRequest): Promise<ImageDescription> {
  const tag = tagOf(request);
  using engine = await openImageEngine(request);
  const image = await inspectImage(engine.client, tag, { signal: request.signal });
  if (image !== null) return describeImage(tag, image);
  throw new EngineError("IMAGE_NOT_FOUND", `The engine does not have the image ${tag}.`, {
    hint: "`podbot image build` builds it; --tag names another.",
    details: { image: tag },
  });
}

/**
 * In the order of the table, each once: the same agents are always the same layers. What makes one a server for editors
 * comes right after it.
 */
function chooseAgents(names: readonly string[]): readonly ImageAgent[] {
  for (const name of names) requireAgent(name);
  const chosen = knownAgents.filter(({ name }) => names.includes(name));
  return chosen.flatMap((agent): readonly ImageAgent[] => {
    const adapter = adapterOf(agent);
    return adapter === null ? [agent] : [agent, adapter];
  });
}

const name = /^(?:[a-zA-Z0-9.-]+(?::\d+)?\/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*$/;

function tagOf({ tag = ownImage }: ImageRequest): string {
  const [, repository = "", label = "latest"] = /^(.*?)(?::([\w][\w.-]{0,127}))?$/.exec(tag) ?? [];
  if (name.test(repository)) return `${repository}:${label}`;
  throw new UsageError("USAGE", `${JSON.stringify(tag)} cannot be the name of an image.`, {
    hint: `Small letters, as in ${ownImage}.`,
  });
}

interface ImageEngine extends Disposable {
  readonly client: EngineClient;
  readonly flavour: "podman" | "docker";
}

async function openImageEngine({ cwd, env, configFile, config, signal }: ImageRequest): Promise<ImageEngine> {
  const loaded = await loadConfig({
    cwd,
    home: homeOf(env),
    env,
    ...(configFile === undefined ? {} : { configFile }),
    ...(config === undefined ? {} : { overrides: config }),
  });
  const { client } = await findEngine(loaded, { env, state: placesOf(env).state });
  try {
    const greeting = await client.request({ method: "GET", path: "/_ping", api: "bare", signal });
    await greeting.discard();
    const flavour = greeting.header("libpod-api-version") === undefined ? "docker" : "podman";
    return { client, flavour, [Symbol.dispose]: () => client[Symbol.dispose]() };
  } catch (error) {
    client[Symbol.dispose]();
    throw error;
  }
}
