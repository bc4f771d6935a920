import type { ContainerPlan } from "../../plan/container.ts";
import type { Operation, Plan } from "../../plan/plan.ts";
import { corner } from "../../plan/wrappers.ts";
import { bindOwn } from "../own.ts";
import type { BoxBirth } from "../wall.ts";
import type { Bind } from "./parts.ts";
import { renderForDocker } from "./render-docker.ts";
import { renderForPodman } from "./render-podman.ts";

/** What a container needs to know of its session. */
export interface Birthplace {
  readonly id: string;
  /** The session's own directory that is seen as Podbot's corner. */
  readonly inlet: string;
  /** An empty directory and an empty file that lie over what is hidden. */
  readonly hiddenDirectory: string;
  readonly hiddenFile: string;
  /** Directories of the session's own, by where they are seen. */
  readonly own: Readonly<Record<string, string>>;
  /** Files of the session's own that lie over those of the image, by where they are seen. */
  readonly files: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  /** A system call filter in the engine's own words, in place of its own. */
  readonly seccompProfile?: string | null;
  /** What of the session's own the plan has places for. */
  readonly parts?: BoxBirth["own"];
}

/** A request to make a container, in the words of the engine's own API. */
export interface ContainerBody {
  readonly api: "docker" | "libpod";
  readonly body: Readonly<Record<string, unknown>>;
}

/** The name of a session's container. */
export function containerName(id: string): string {
  return `podbot-${id}`;
}

/**
 * The plan as a request to the engine. Podman's own API and not the one it shares with Docker: that one puts paths
 * into a list with commas, and a comma in a path would mount something else.
 */
export function renderContainer(
  plan: Plan,
  container: ContainerPlan,
  { id, labels, seccompProfile = null }: Pick<Birthplace, "id" | "labels" | "seccompProfile">,
  binds: readonly Bind[],
): ContainerBody {
  const first = [`${corner}/warden`, `${corner}/in/${id}.sock`, `${corner}/birth`];
  const parts = { plan, container, name: containerName(id), labels, first, binds, seccompProfile };
  return container.engine.flavour === "podman"
    ? { api: "libpod", body: renderForPodman(parts) }
    : { api: "docker", body: renderForDocker(parts) };
}

/** Every mount of a plan as a bind, in order: those of the plan, and what the session brings. */
export function bindsOf(plan: Plan, place: Place): readonly Bind[] {
  return [
    ...plan.operations.flatMap((operation) => bindOf(operation, place)),
    ...Object.entries(place.own).map(
      ([target, source]): Bind => ({
        kind: "bind",
        source,
        target,
        access: "rw",
        identity: null,
        why: "stays writable",
      }),
    ),
  ];
}

type Place = Pick<Birthplace, "inlet" | "hiddenDirectory" | "hiddenFile" | "own" | "files" | "parts">;

function bindOf(operation: Operation, { inlet, hiddenDirectory, hiddenFile, files, parts }: Place): readonly Bind[] {
  const { target, why } = operation;
  const own = (source: string): readonly Bind[] => [
    { kind: "bind", source, target, access: "ro", identity: null, why },
  ];
  switch (operation.kind) {
    case "bind":
      return [operation];
    case "inlet":
      return own(inlet);
    case "own":
      return [bindOwn(operation, parts)];
    // Not a tmpfs: engines fill one with what it was to hide.
    case "tmpfs":
      return own(hiddenDirectory);
    case "mask":
      return own(hiddenFile);
    case "file":
      return files[target] === undefined ? [] : own(files[target]);
    default:
      // Files of the corner lie in the inlet, and what is hidden is read-only already.
      return [];
  }
}

/** What the warden must find at a path: a mount of its own, of this file or directory, and read-only or not. */
export type Expectation = readonly [path: string, identity: string, access: "ro" | "rw"];

/**
 * The engine looks a path up once more after we did, so the warden looks at what came of it before anything runs.
 * gVisor has devices, inodes and a list of mounts of its own, which say nothing about the host's.
 */
export function expectations(
  container: ContainerPlan,
  binds: readonly Bind[],
  identities: readonly string[],
): readonly Expectation[] {
  if (isGvisor(container)) return [];
  return binds.map(({ target, access }, at) => [target, identities[at] as string, access]);
}

export function isGvisor(container: Pick<ContainerPlan, "runtime" | "engine">): boolean {
  return runtimeOf(container).startsWith("runsc");
}

/** The name of the program that builds the container, without its directory. */
export function runtimeOf({ runtime, engine }: Pick<ContainerPlan, "runtime" | "engine">): string {
  return (runtime ?? engine.runtime).replace(/^.*\//, "");
}
