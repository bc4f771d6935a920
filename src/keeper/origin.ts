import type { LoadedConfig } from "../config/types.ts";

/** Where an effective value came from, in words. */
export function originOf(loaded: LoadedConfig, key: string): string {
  const origin = loaded.origins.find((candidate) => candidate.key === key);
  return origin === undefined || origin.layer === "default" ? "default" : `${origin.source}, ${origin.layer}`;
}

/** Whether anybody has said something, or the default holds. */
export function isSaid(loaded: LoadedConfig, key: string): boolean {
  const origin = loaded.origins.find((candidate) => candidate.key === key);
  return origin !== undefined && origin.layer !== "default";
}
