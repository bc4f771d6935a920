import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { WallError } from "../errors.ts";
import type { Operation, Plan } from "../plan/plan.ts";

/** Linux: a descriptor that names a file without opening it, and never through a link. Node has no names for these. */
export const O_PATH = 0o10000000;
export const O_NOFOLLOW = 0o400000;

type Bind = Extract<Operation, { kind: "bind" }>;
type Pinned = Extract<Operation, { kind: "bind" | "copy" }>;

export interface Pin {
  readonly descriptor: number;
  /** What it stands for, as `dev:ino`: also where Podbot has made it itself. */
  readonly identity: string;
}

export interface Pins extends Disposable {
  /** The pin of one of the binds. */
  of(bind: Bind): Pin;
  /** Of each bind, in order. */
  readonly identities: readonly string[];
  /** Throws where a path stands for something else by now. */
  lookAgain(): void;
}

export function bindsOf({ operations }: Pick<Plan, "operations">): readonly Bind[] {
  return operations.filter((operation) => operation.kind === "bind");
}

/** Opens what a plan mounts, and makes sure that it is still what was surveyed. */
export function openPins(binds: readonly Bind[]): Pins {
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
  const of = ({ source }: Bind) => {
    const descriptor = opened.get(source) as number;
    return { descriptor, identity: identityOf(descriptor) };
  };
  const identities = binds.map((bind) => of(bind).identity);
  const lookAgain = () => {
    using again = openPins(binds);
    const at = again.identities.findIndex((identity, number) => identity !== identities[number]);
    if (at >= 0) throw changed((binds[at] as (typeof binds)[number]).source, "it was replaced meanwhile");
  };
  return { of, identities, lookAgain, [Symbol.dispose]: close };
}

/** Settings are small; what is not would be held in memory. */
const largestCopy = 4 * 1024 * 1024;

/** What a file holds, if it is still the one that was surveyed. */
export function readPinned(operation: Pick<Pinned, "source" | "identity">): Buffer {
  // It was a plain file; whatever has taken its place, opening it must not wait.
  const descriptor = openPin(operation.source, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    compare(operation, descriptor);
    const stats = fstatSync(descriptor);
    if (!stats.isFile()) throw changed(operation.source, "it is not a file any more");
    if (stats.size > largestCopy) throw changed(operation.source, "it is too large to be copied");
    return readFileSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function openPin(path: string, flags = O_PATH): number {
  try {
    return openSync(path, flags | O_NOFOLLOW);
  } catch (cause) {
    throw changed(path, "it can no longer be opened", {}, cause);
  }
}

function compare({ source, identity }: Pick<Pinned, "source" | "identity">, descriptor: number): void {
  // Nothing that is mounted is a link: survey and wall have resolved them all.
  if (fstatSync(descriptor).isSymbolicLink()) throw changed(source, "it is a link now");
  if (identity !== null && identityOf(descriptor) !== identity)
    throw changed(source, "it is no longer the file or directory that was surveyed");
}

export function identityOf(descriptor: number): string {
  const { dev, ino } = fstatSync(descriptor);
  return `${dev}:${ino}`;
}

export function changed(path: string, why: string, more: Readonly<Record<string, unknown>> = {}, cause?: unknown) {
  return new WallError("PATH_CHANGED", `${path} changed between the plan and the start: ${why}.`, {
    hint: "Nothing was started. Find out who moves files there, then start again.",
    details: { path, ...more },
    cause,
  });
}
