import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { FilesystemError, PodbotError } from "../../errors.ts";
import type { ContainerPlan } from "../../plan/container.ts";
import type { Plan } from "../../plan/plan.ts";
import { corner } from "../../plan/wrappers.ts";
import type { TrustFile } from "../wall.ts";
import { ownPlaces } from "./parts.ts";
import { type Birthplace, type Expectation, isGvisor } from "./render.ts";
import { withoutForeignCalls } from "./seccomp-profile.ts";

/** What is mounted inside: nothing of it can be changed there, and all of it may be reached by any user of the box. */
export function makeInlet(
  plan: Plan,
  container: ContainerPlan,
  directory: string,
): Omit<Birthplace, "id" | "labels" | "seccompProfile"> {
  const inlet = join(directory, "corner");
  const hiddenDirectory = join(directory, "hidden");
  const hiddenFile = join(directory, "mask");
  const places = ownPlaces({ plan, container });
  const own = Object.fromEntries(places.map((target, at) => [target, join(directory, `own-${at}`)]));
  const over = plan.operations.filter((operation) => operation.kind === "file" && operation.over === true);
  const files = Object.fromEntries(over.map(({ target }, at) => [target, join(directory, `file-${at}`)]));
  try {
    // What a try that failed has left.
    for (const left of [inlet, hiddenDirectory, hiddenFile, ...Object.values(own), ...Object.values(files)])
      rmSync(left, { recursive: true, force: true });
    for (const made of [inlet, join(inlet, "in")]) {
      mkdirSync(made, { mode: 0o755 });
      chmodSync(made, 0o755);
    }
    for (const made of Object.values(own)) mkdirSync(made, { mode: 0o700 });
    mkdirSync(hiddenDirectory, { mode: 0o555 });
    writeFileSync(hiddenFile, "", { mode: 0o000, flag: "wx" });
    for (const operation of plan.operations) {
      const path = files[operation.target] ?? inInlet(inlet, operation.target);
      if (path === null) continue;
      // A mount needs something to lie on.
      if (operation.kind === "bind" || operation.kind === "own") writeFileSync(path, "", { mode: 0o444, flag: "wx" });
      if (operation.kind !== "file") continue;
      writeFileSync(path, operation.content, { flag: "wx" });
      chmodSync(path, operation.mode);
    }
  } catch (cause) {
    throw unwritable(inlet, cause);
  }
  return { inlet, hiddenDirectory, hiddenFile, own, files };
}

/** The engine's own filter, made shorter; null where the engine had better take its own as it is. */
export function laySeccompProfile(container: ContainerPlan, profile: string | null, directory: string): string | null {
  // What is privileged has none, and gVisor has a kernel of its own.
  if (profile === null || container.profile === "privileged" || isGvisor(container)) return null;
  const shorter = withoutForeignCalls(readOrNothing(profile));
  if (shorter === null) return null;
  const path = join(directory, "seccomp.json");
  try {
    writeFileSync(path, shorter, { mode: 0o600 });
  } catch (cause) {
    throw unwritable(path, cause);
  }
  return path;
}

function readOrNothing(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** Puts in what must be trusted. It may come late, as long as nobody's program runs: the directory is mounted, not copied. */
export function layTrust(inlet: string, trust: readonly TrustFile[]): void {
  try {
    for (const { target, bytes } of trust) {
      const path = inInlet(inlet, target);
      // Others are the image's, and only the engine can change them.
      if (path !== null) writeTrust(path, bytes);
    }
  } catch (cause) {
    throw unwritable(inlet, cause);
  }
}

function isInCorner(target: string): boolean {
  return target.startsWith(`${corner}/`);
}

function inInlet(inlet: string, target: string): string | null {
  return isInCorner(target) ? join(inlet, target.slice(corner.length + 1)) : null;
}

function writeTrust(path: string, bytes: Uint8Array): void {
  const made = mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
  if (made !== undefined) chmodSync(made, 0o755);
  writeFileSync(path, bytes, { flag: "wx" });
  chmodSync(path, 0o444);
}

/** What a birth says besides the token. */
export interface BirthWords {
  readonly filter: Uint8Array;
  readonly expected: readonly Expectation[];
  /** Empty where the warden is not to look for what the engine has added. */
  readonly bounds: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/**
 * What the warden alone may know: the token, the system call filter, what it must find mounted and
 * must not find at all, and the environment. The engine shows arguments and environment of a container to every client,
 * so none of it goes that way.
 */
export function writeBirth(inlet: string, token: Buffer, { filter, expected, bounds, env }: BirthWords): Disposable {
  const path = join(inlet, "birth");
  const words = (list: readonly string[]) => Buffer.from(list.map((word) => `${word}\0`).join(""));
  const variables = words(Object.entries(env).map(([name, value]) => `${name}=${value}`));
  const parts = [token, ...sized(filter), ...sized(words(expected.flat())), ...sized(words(bounds)), variables];
  try {
    writeFileSync(path, Buffer.concat(parts), { mode: 0o600, flag: "wx" });
  } catch (cause) {
    throw unwritable(inlet, cause);
  }
  return {
    // Read once, before anything else runs inside.
    [Symbol.dispose]: () => rmSync(path, { force: true }),
  };
}

function sized(bytes: Uint8Array): readonly Uint8Array[] {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(bytes.length);
  return [length, bytes];
}

/** What is known already stays as it is. */
export function unwritable(inlet: string, cause: unknown): PodbotError {
  if (cause instanceof PodbotError) return cause;
  return new FilesystemError("FILESYSTEM", `The session's directory ${inlet} cannot be made.`, {
    hint: "Make its parent writable, with space left, or set XDG_RUNTIME_DIR to a directory that is.",
    cause,
  });
}
