import { dirname, resolve } from "node:path";
import { isLinkAt } from "../../engine/archive.ts";
import type { EngineClient } from "../../engine/client.ts";
import { createContainer, removeContainer } from "../../engine/containers.ts";
import { inspectContainer } from "../../engine/inspection.ts";
import { PolicyError } from "../../errors.ts";
import type { ContainerPlan } from "../../plan/container.ts";
import type { Plan } from "../../plan/plan.ts";
import { helperName } from "./doors-container.ts";
import type { KnownWays } from "./known-ways.ts";
import { type Bind, temporary, volumesOf } from "./parts.ts";
import { apart } from "./render-podman.ts";

/** A container that has been created and not started: nothing in it can change a path meanwhile. */
interface Made {
  readonly id: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

/**
 * Refuses an image with a link on the way to a place where the engine is about to mount something. The engine follows
 * the link, so that the mount lies elsewhere: over Podbot's corner it would replace the first program.
 */
export async function refuseLinks(
  client: EngineClient,
  made: Made,
  plan: Plan,
  container: ContainerPlan,
  binds: readonly Bind[],
  known: KnownWays,
  signal?: AbortSignal,
): Promise<void> {
  const { image } = container.engine;
  const volumes = image.volumes.map((path) => resolve("/", path));
  const places = [...volumes, ...placesOf(plan, container, binds)];
  const ways = [...new Set(places.flatMap(wayTo))].filter((path) => !known.has(path));
  if (ways.length === 0) return;
  const look = async (id: string) => {
    const found: (boolean | null)[] = [];
    for (let at = 0; at < ways.length; at += atOnce) {
      const some = ways.slice(at, at + atOnce);
      found.push(...(await Promise.all(some.map((path) => isLinkAt(client, id, path, { signal })))));
    }
    // A path that is missing is answered as a container that is missing.
    const isThere = !found.includes(null) || (await inspectContainer(client, id)) !== null;
    return { found, isThere };
  };
  const { found, isThere } = await withBareContainer(client, container, made, look, signal);
  const links = new Set(ways.filter((_, at) => found[at] === true));
  if (isThere) known.add(ways.filter((path) => !links.has(path)));
  const place = places.find((each) => wayTo(each).some((path) => links.has(path)));
  if (place === undefined) return;
  const link = wayTo(place).find((path) => links.has(path)) as string;
  const details = { path: place, link, image: image.name };
  if (volumes.includes(place)) {
    throw new PolicyError(
      "MOUNT_REFUSED",
      `The image ${image.name} has a volume at ${place} (VOLUME), and ${link} is a link in the image.`,
      { hint: "Build the image without that VOLUME, or with the path that the link leads to.", details },
    );
  }
  const isWorkspace = plan.workspace === "mounted" && wayTo(plan.directory).includes(link);
  throw new PolicyError("MOUNT_REFUSED", `The path ${place} goes over a link of the image ${image.name}: ${link}.`, {
    hint: isWorkspace
      ? "Set workspace.container_path to a path without links, as `/workspace`."
      : "Build the image with a directory or file in the place of the link, or leave out the rule for that path.",
    details,
  });
}

const removalMs = 5_000;

/** Questions that wait for an answer together. Node warns where more than ten listen to one signal. */
const atOnce = 8;

/**
 * Podman tells of what is to be mounted at a path and not of the image's link there, so a second container without
 * mounts is asked, which is never started. It has the name of a helper, so that a later sweep finds what a crash leaves.
 */
async function withBareContainer<T>(
  client: EngineClient,
  { engine }: ContainerPlan,
  container: Made,
  look: (id: string) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  if (engine.flavour !== "podman") return look(container.id);
  const name = helperName(container.name);
  const namespaces = { netns: { nsmode: "none" }, ...apart };
  const body = { name, image: engine.image.id, labels: container.labels, image_volume_mode: "ignore", ...namespaces };
  // It never runs, but there is no container without a program.
  const entrypoint = ["true"];
  const bare = await createContainer(client, name, { ...body, entrypoint }, { api: "libpod", signal });
  try {
    return await look(bare.id);
  } finally {
    // One that stays is swept later; an engine that hangs must not hold the start's end up.
    await removeContainer(client, bare.id, { timeoutMs: removalMs }).catch(() => {});
  }
}

/** What lies below a mounted directory is the host's, and was looked at there. */
function placesOf(plan: Plan, container: ContainerPlan, binds: readonly Bind[]): readonly string[] {
  const targets = binds.map(({ target }) => target);
  return [
    ...targets.filter((target) => !targets.some((other) => wayTo(dirname(target)).includes(other))),
    ...volumesOf({ plan, container }),
    ...(container.readOnlyRoot ? Object.keys(temporary) : []),
  ];
}

/** A path and all that lie above it, without the root. */
function wayTo(path: string): readonly string[] {
  return path === "/" ? [] : [...wayTo(dirname(path)), path];
}
