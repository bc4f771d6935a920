import { showName } from "./display.ts";
import type { KeyEntry } from "./key-types.ts";
import { keys } from "./keys.ts";
import { readLeaf, writeLeaf } from "./leaf.ts";
import type { Config, Layer, Origin, PartialConfig } from "./types.ts";
import { mergeRule } from "./value-type.ts";

/**
 * One configuration out of all layers, later layers over earlier ones: lists are concatenated, records are merged name
 * by name, everything else is taken from the last layer that says it.
 */
export function mergeLayers(layers: readonly Layer[]): { config: Config; origins: readonly Origin[] } {
  const config: Record<string, unknown> = {};
  const origins: Origin[] = [];
  for (const key of keys) {
    if (key.section !== undefined) config[key.section] ??= {};
    const said = layers.flatMap((layer) => {
      const value = readLeaf(layer.value, key);
      return value === undefined ? [] : [{ layer, value }];
    });
    const merged = mergeValues(key, said);
    origins.push(...merged.origins);
    if (merged.value !== undefined) writeLeaf(config, key, merged.value);
  }
  // The table of keys is typed against Config, and every layer was held to the table.
  return { config: config as unknown as Config, origins };
}

/** The first layer: the defaults of every key. Merged alone it is already a whole configuration. */
export function defaultLayer(): Layer {
  const value: Record<string, unknown> = {};
  for (const key of keys) if (key.default !== undefined) writeLeaf(value, key, key.default);
  return { name: "default", source: "built in", trusted: true, value: value as PartialConfig };
}

interface Said {
  readonly layer: Layer;
  readonly value: unknown;
}

interface Merged {
  readonly value: unknown;
  readonly origins: readonly Origin[];
}

function mergeValues(key: KeyEntry, said: readonly Said[]): Merged {
  switch (mergeRule(key.type)) {
    case "concatenate": {
      const elements = said.flatMap(({ layer, value }) =>
        (value as readonly unknown[]).map((element) => originOf(key.name, element, layer)),
      );
      return { value: elements.map((origin) => origin.value), origins: elements };
    }
    case "per-name": {
      const entries = new Map<string, Origin>();
      for (const { layer, value } of said) {
        for (const [name, entry] of Object.entries(value as object)) {
          entries.set(name, originOf(`${key.name}.${showName(name)}`, entry, layer));
        }
      }
      // Without a prototype, so that a name from a file can neither change one nor find one.
      const record: Record<string, unknown> = Object.create(null);
      for (const [name, origin] of entries) record[name] = origin.value;
      return { value: record, origins: [...entries.values()] };
    }
    case "last": {
      const last = said.at(-1);
      return { value: last?.value, origins: last === undefined ? [] : [originOf(key.name, last.value, last.layer)] };
    }
  }
}

function originOf(key: string, value: unknown, layer: Layer): Origin {
  return { key, value, layer: layer.name, source: layer.source };
}
