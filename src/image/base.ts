import type { EngineClient } from "../engine/client.ts";
import { pullImage } from "../engine/image-store.ts";
import { inspectImage } from "../engine/images.ts";
import { EngineError } from "../errors.ts";
import { publicBase, type RootRecipe } from "./debian.ts";
import { makeRoot, type RootOptions } from "./root.ts";

/** What an image is built on. */
export interface Base {
  readonly name: string;
  readonly id: string;
}

/** `auto`: the public one, else a root that is made here. `debian`: only that. Anything else is an image's name. */
export type BaseWish = "auto" | "debian" | (string & {});

/** A registry that says nothing for as long is not there. */
const silenceMs = 20_000;

/** What the engine has already. Nothing is fetched or made. */
export async function presentBase(
  client: EngineClient,
  wish: BaseWish,
  { tag }: RootRecipe,
  signal?: AbortSignal,
): Promise<Base | null> {
  const names = wish === "auto" ? [publicBase, tag] : [wish === "debian" ? tag : wish];
  const found = await Promise.all(names.map((name) => lookFor(client, name, signal)));
  return found.find((base) => base !== null) ?? null;
}

async function lookFor(client: EngineClient, name: string, signal?: AbortSignal): Promise<Base | null> {
  const image = await inspectImage(client, name, { signal });
  return image === null ? null : { name, id: image.id.replace("sha256:", "") };
}

export interface BaseOptions extends Omit<RootOptions, "labels"> {
  readonly onDoing: (text: string) => void;
  readonly onNote: (text: string) => void;
}

/** Fetches or makes the base, and says which and why. */
export async function obtainBase(
  client: EngineClient,
  wish: BaseWish,
  root: RootRecipe,
  options: BaseOptions,
): Promise<Base> {
  const { signal, onDoing, onNote } = options;
  if (wish !== "debian") {
    const name = wish === "auto" ? publicBase : wish;
    onDoing(`fetching ${name}`);
    const refusal = await pullImage(client, name, { signal, silenceMs }).then(
      () => null,
      (error: unknown) => refusalOf(error, signal),
    );
    if (refusal === null) return await present(client, name, root, signal);
    if (wish !== "auto") throw notFetched(name, refusal);
    onNote(`${name} cannot be fetched, so a root of Debian is made here: ${shortened(refusal.message)}`);
  }
  onDoing("making a root of Debian");
  await makeRoot(client, root, { ...options, labels: { "org.podbot.base": root.tag } });
  return await present(client, root.tag, root, signal);
}

async function present(client: EngineClient, name: string, root: RootRecipe, signal?: AbortSignal): Promise<Base> {
  const base = await presentBase(client, name === root.tag ? "debian" : name, root, signal);
  if (base !== null) return base;
  throw new EngineError("IMAGE_BASE_MISSING", `The engine has made ${name}, and does not have it.`);
}

/** Only what the engine says of the registry: that it is gone itself is another matter. */
function refusalOf(error: unknown, signal: AbortSignal | undefined): EngineError {
  if (signal?.aborted || !(error instanceof EngineError) || error.code !== "ENGINE_REFUSED") throw error;
  return error;
}

function notFetched(name: string, refusal: EngineError): EngineError {
  return new EngineError("IMAGE_BASE_MISSING", `The base ${name} cannot be fetched. ${refusal.message}`, {
    hint: "Name an image that the engine has or can reach with --base; --base debian makes a root of Debian here.",
    details: { ...refusal.details, base: name },
    cause: refusal,
  });
}

/** Engines say the cause last. */
function shortened(text: string): string {
  const line = text.replace(/\s+/g, " ");
  return line.length > 120 ? `… ${line.slice(-118)}` : line;
}
