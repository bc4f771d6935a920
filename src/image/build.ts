import { randomBytes } from "node:crypto";
import { buffer } from "node:stream/consumers";
import { getArchive } from "../engine/archive.ts";
import { buildLayers } from "../engine/build.ts";
import type { EngineClient } from "../engine/client.ts";
import { createContainer, removeContainer } from "../engine/containers.ts";
import { removeImage } from "../engine/image-store.ts";
import { inspectImage } from "../engine/images.ts";
import { EngineError } from "../errors.ts";
import { thisHost } from "../machine/host.ts";
import { hardLimits } from "../machine/limits.ts";
import { type Base, type BaseWish, obtainBase, presentBase } from "./base.ts";
import { contextArchive, readImageSources } from "./context.ts";
import { type RootRecipe, rootRecipe } from "./debian.ts";
import { buildTrouble } from "./failure.ts";
import { type BuildHost, certificateFiles, hostMirror, type PackageSettings, packageSettings } from "./host.ts";
import { hasLoopbackProxy, proxyArguments } from "./proxies.ts";
import { type ImageAgent, inputsHash, labelNames, labelsFor, makeRecipe, type Recipe } from "./recipe.ts";
import { describeImage, type ImageDescription } from "./show.ts";
import { firstFile, installedVersions, notablePackages } from "./software.ts";
import { type BuildStep, makeStepReader } from "./steps.ts";

/** What happens while an image is built. */
export type ImageEvent =
  /** It will take a while. */
  | { readonly kind: "doing"; readonly text: string }
  /** A decision that the owner should know of. */
  | { readonly kind: "note"; readonly text: string }
  | { readonly kind: "warning"; readonly text: string }
  | { readonly kind: "step"; readonly step: BuildStep };

export interface BuildWish {
  readonly tag: string;
  readonly agents: readonly ImageAgent[];
  readonly base: BaseWish;
  /** Take nothing from earlier builds: base, packages and agents anew. */
  readonly fresh: boolean;
  /** Let the build use the machine's own network. Where a proxy listens on its loopback, it does so in any case. */
  readonly hostNetwork: boolean;
  readonly host: BuildHost;
  readonly flavour: "podman" | "docker";
  readonly report: (event: ImageEvent) => void;
  readonly signal?: AbortSignal | undefined;
}

export interface BuiltImage extends ImageDescription {
  /** Whether there was nothing to do. */
  readonly upToDate: boolean;
}

/** What an image with these agents would be made of, on this machine. */
export function composeRecipe(
  agents: readonly ImageAgent[],
  host: BuildHost,
): { readonly recipe: Recipe; readonly mirror: readonly string[] } {
  const mirror = hostMirror();
  const { template, files } = readImageSources();
  const context = [...files, ...certificateFiles(host, mirror)];
  return { recipe: makeRecipe(template, context, agents, thisHost().arch), mirror };
}

/** Builds the image that agents work in, or finds that it is there already, of the very same. */
export async function buildOn(client: EngineClient, wish: BuildWish): Promise<BuiltImage> {
  const { tag, host, fresh, signal } = wish;
  const { recipe, mirror } = composeRecipe(wish.agents, host);
  const { arch, uid } = thisHost();
  const rootFor = (options: readonly string[]) => rootRecipe(mirror, options, { isRoot: uid === 0, arch });
  const [before, found] = await Promise.all([
    inspectImage(client, tag, { signal }),
    fresh ? null : presentBase(client, wish.base, rootFor([]), signal),
  ]);
  if (before !== null && found !== null && before.labels[labelNames.inputs] === inputsHash(recipe, found.id)) {
    return { ...describeImage(tag, before), upToDate: true };
  }
  const settings = await packageSettings(host);
  for (const text of settings.warnings) wish.report({ kind: "warning", text });
  const base = found ?? (await getBase(client, wish, rootFor(settings.apt.options), settings));
  await buildFrom(client, wish, recipe, { base, mirror, settings });
  const built = await inspectImage(client, tag, { signal });
  if (built === null) throw new EngineError("IMAGE_BUILD_FAILED", `The engine has built ${tag}, and does not have it.`);
  // Nobody finds the one of before any more; where something still runs in it, it stays.
  const isOurs = before !== null && before.labels[labelNames.inputs] !== undefined;
  if (isOurs && before.id !== built.id) await removeImage(client, before.id.replace("sha256:", ""));
  return { ...describeImage(tag, built), upToDate: false };
}

function getBase(
  client: EngineClient,
  { base, host, report, signal }: BuildWish,
  root: RootRecipe,
  { proxies }: PackageSettings,
): Promise<Base> {
  return obtainBase(client, base, root, {
    host,
    proxies: proxyArguments(proxies),
    signal,
    onDoing: (text) => report({ kind: "doing", text }),
    onNote: (text) => report({ kind: "note", text }),
  });
}

interface Ground {
  readonly base: Base;
  readonly mirror: readonly string[];
  readonly settings: PackageSettings;
}

/** Which versions came is known only afterwards: then the labels are put on it, in a build of a single line. */
async function buildFrom(client: EngineClient, wish: BuildWish, recipe: Recipe, ground: Ground): Promise<void> {
  const { base } = ground;
  wish.report({ kind: "note", text: `building ${wish.tag} on ${base.name}` });
  const id = await buildContents(client, wish, recipe, ground);
  const software = await softwareOf(client, id, recipe, wish.signal);
  const inputs = inputsHash(recipe, base.id);
  const content = Buffer.from(`FROM ${reference(wish, id)}\n`);
  await buildLayers(client, {
    flavour: wish.flavour,
    context: contextArchive([{ name: "Containerfile", mode: 0o644, content }]),
    args: {},
    labels: labelsFor(recipe, { inputs, base: base.name, software }),
    tag: wish.tag,
    ulimits: [],
    signal: wish.signal,
    onSaid: () => {},
  });
}

async function buildContents(
  client: EngineClient,
  wish: BuildWish,
  recipe: Recipe,
  { base, mirror, settings }: Ground,
): Promise<string> {
  const { apt, npmRegistry, proxies } = settings;
  const reader = makeStepReader(recipe.agents, (step) => wish.report({ kind: "step", step }));
  try {
    return await buildLayers(client, {
      flavour: wish.flavour,
      context: contextArchive(recipe.context),
      args: {
        BASE: reference(wish, base.id),
        APT_SOURCES: mirror.join(";"),
        APT_OPTIONS: apt.options.join(" "),
        NPM_REGISTRY: npmRegistry ?? "",
        ...proxyArguments(proxies),
      },
      ulimits: hardLimits(),
      hostNetwork: wish.hostNetwork || hasLoopbackProxy(proxies),
      fresh: wish.fresh,
      signal: wish.signal,
      onSaid: reader.hear,
    });
  } catch (error) {
    if (wish.signal?.aborted || !(error instanceof EngineError) || error.code !== "IMAGE_BUILD_FAILED") throw error;
    throw buildTrouble(error, { step: reader.current(), lines: reader.lastLines() });
  }
}

/** How an image is named that has no name. */
function reference({ flavour }: Pick<BuildWish, "flavour">, id: string): string {
  return flavour === "docker" ? `sha256:${id}` : id;
}

/** Looked up in a container that is never started. */
async function softwareOf(
  client: EngineClient,
  image: string,
  { agents }: Recipe,
  signal: AbortSignal | undefined,
): Promise<Readonly<Record<string, string>>> {
  const name = `podbot-image-${randomBytes(6).toString("hex")}`;
  const { id } = await createContainer(client, name, { Image: image, Cmd: ["true"] }, { signal });
  try {
    const archive = await getArchive(client, id, "/var/lib/dpkg/status", { signal });
    const status = archive === null ? "" : firstFile(await buffer(archive)).toString("utf8");
    return installedVersions(status, [...notablePackages, ...agents.flatMap((agent) => agent.package.debian)]);
  } finally {
    await removeContainer(client, id);
  }
}
