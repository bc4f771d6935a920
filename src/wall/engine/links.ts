import { dirname, resolve } from "node:path";
import { isLinkAt } from "../../engine/archive.ts";
import type { EngineClient } from "../../engine/client.ts";
import { PolicyError } from "../../errors.ts";
import type { ContainerPlan } from "../../plan/container.ts";
import type { Plan } from "../../plan/plan.ts";
import { type Bind, temporary, volumesOf } from "./parts.ts";

/**
 * Refuses an image with a link on the way to a place where the engine is about to mount something. The engine follows
 * the link, so that the mount lies elsewhere: over Podbot's corner it would replace the first program. The container
 * must have been created and not started: nothing in it can change a path meanwhile.
 */
export async function refuseLinks(
  client: EngineClient,
  id: string,
  plan: Plan,
  container: ContainerPlan,
  binds: readonly Bind[],
  signal?: AbortSignal,
): Promise<void> {
  const { image, flavour } = container.engine;
  const volumes = image.volumes.map((path) => resolve("/", path));
  const places = [...volumes, ...placesOf(plan, container, binds)];
  // At a place of the plan, Podman speaks of what is to be mounted there; a link, the warden finds.
  const askable = (place: string) => (flavour === "podman" && !volumes.includes(place) ? dirname(place) : place);
  const ways = new Set(places.flatMap((place) => wayTo(askable(place))));
  const found = await Promise.all(
    [...ways].map(async (path) => ((await isLinkAt(client, id, path, { signal })) === true ? path : [])),
  );
  const links = new Set(found.flat());
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
