import type { ImageInspection } from "../engine/images.ts";
import { labelNames, versionsIn } from "./recipe.ts";

/** What an image holds, as its labels say. */
export interface ImageDescription {
  readonly tag: string;
  readonly id: string;
  /** In bytes. */
  readonly size: number;
  /** What it was built on; null where Podbot has not built it. */
  readonly base: string | null;
  /** A hash of all that went into it; null where Podbot has not built it. */
  readonly inputs: string | null;
  /** Agents and their versions. */
  readonly agents: Readonly<Record<string, string>>;
  /** Packages and their versions. */
  readonly software: Readonly<Record<string, string>>;
}

export function describeImage(tag: string, { id, size, labels }: ImageInspection): ImageDescription {
  return {
    tag,
    id: id.replace("sha256:", ""),
    size,
    base: labels[labelNames.base] ?? null,
    inputs: labels[labelNames.inputs] ?? null,
    agents: versionsIn(labels[labelNames.agents]),
    software: versionsIn(labels[labelNames.software]),
  };
}
