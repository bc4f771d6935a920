import { setTimeout as wait } from "node:timers/promises";
import { statusOf } from "../../engine/answer.ts";
import type { EngineClient } from "../../engine/client.ts";
import { type CallOptions, removeContainer } from "../../engine/containers.ts";
import { inspectContainer } from "../../engine/inspection.ts";

/** How often, 100 ms apart, it is tried again. */
const tries = 20;

/**
 * Removes a container that the engine may be removing by itself at the same time. Podman then fails in many words, of
 * this and of every other question about it: what counts is whether it is gone in the end.
 */
export async function removeSurely(client: EngineClient, name: string, options: CallOptions = {}): Promise<void> {
  for (let left = tries; ; left--) {
    try {
      return await removeContainer(client, name, options);
    } catch (error) {
      if (statusOf(error) === undefined) throw error;
      if (await isGone(client, name, options)) return;
      if (left === 0) throw error;
      await wait(100);
    }
  }
}

async function isGone(client: EngineClient, name: string, options: CallOptions): Promise<boolean> {
  try {
    return (await inspectContainer(client, name, options)) === null;
  } catch (error) {
    if (statusOf(error) === undefined) throw error;
    return false;
  }
}
