import { closeSync, fstatSync, openSync } from "node:fs";
import { WallError } from "../../errors.ts";
import type { Operation } from "../../plan/plan.ts";

/** Linux: a descriptor that names a file without opening it, and never through a link. Node has no names for these. */
const O_PATH = 0o10000000;
const O_NOFOLLOW = 0o400000;

export interface Pins extends Disposable {
  /** One descriptor for each bind operation, in order; the same source shares one. */
  readonly descriptors: readonly number[];
}

/** Opens what a plan mounts, and makes sure that it is still what was surveyed. */
export function openPins(binds: readonly Extract<Operation, { kind: "bind" }>[]): Pins {
  const opened = new Map<string, number>();
  const close = () => {
    for (const descriptor of opened.values()) closeSync(descriptor);
    opened.clear();
  };
  try {
    for (const operation of binds) {
      if (!opened.has(operation.source)) opened.set(operation.source, openPin(operation.source));
      compare(operation, opened.get(operation.source) as number);
    }
  } catch (error) {
    close();
    throw error;
  }
  return { descriptors: binds.map(({ source }) => opened.get(source) as number), [Symbol.dispose]: close };
}

function openPin(path: string): number {
  try {
    return openSync(path, O_PATH | O_NOFOLLOW);
  } catch (cause) {
    throw changed(path, "it can no longer be opened", cause);
  }
}

function compare({ source, identity }: Extract<Operation, { kind: "bind" }>, descriptor: number): void {
  if (identity === null) return;
  const { dev, ino } = fstatSync(descriptor);
  if (`${dev}:${ino}` !== identity) throw changed(source, "it is no longer the file or directory that was surveyed");
}

function changed(path: string, why: string, cause?: unknown): WallError {
  return new WallError("PATH_CHANGED", `${path} changed between the plan and the start: ${why}.`, {
    hint: "Nothing was started. Find out who moves files there, then start again.",
    details: { path },
    cause,
  });
}
