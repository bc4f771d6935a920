import { existsSync, lstatSync, mkdirSync } from "node:fs";
import { FilesystemError, WallError } from "../errors.ts";
import { isGranted } from "../plan/access.ts";
import type { Operation, Plan } from "../plan/plan.ts";
import { type Holding, holdNames } from "./held.ts";
import { bindsOf, openPins } from "./pin.ts";
import type { Gap } from "./wall.ts";

export interface Preparation {
  readonly gaps: readonly Gap[];
  /** What runs outside to build the wall. */
  readonly programs: readonly string[];
  /** Where claims on held names are recorded. */
  readonly heldDirectory: string;
}

/** Refuses what cannot be trusted or enforced, and makes what the plan needs on the host. The same for every wall. */
export function prepare(plan: Plan, { gaps, programs, heldDirectory }: Preparation): Holding {
  refuseWritableWall(plan, programs);
  if (gaps.length > 0) throw gapError(gaps);
  makeKept(plan);
  return holdNames(heldDirectory, plan.held, protectedPaths(plan));
}

/**
 * Builds the plan with the names that are held. Builds it again if another program's socket or mount disappears
 * meanwhile.
 */
export async function buildPossible<T>(plan: Plan, holding: Holding, build: (plan: Plan) => Promise<T>): Promise<T> {
  return withPresentSockets(withHeld(plan, holding), (present) => againWhereTransient(() => build(present)));
}

/** Builds again, up to 20 times, while the wall marks its failure as transient. */
async function againWhereTransient<T>(build: () => Promise<T>): Promise<T> {
  for (let triesLeft = 20; ; triesLeft--) {
    try {
      return await build();
    } catch (error) {
      const isTransient = error instanceof WallError && error.details["transient"] === true;
      if (!isTransient || triesLeft === 0) throw error;
    }
  }
}

/**
 * Sockets of other programs come and go. One that has disappeared needs no mask. If one disappears while the wall is
 * being built, the build fails and is repeated, up to 20 times: without its mask, or with it if the socket has come back.
 */
async function withPresentSockets<T>(plan: Plan, build: (plan: Plan) => Promise<T>): Promise<T> {
  let present = withoutVanished(plan);
  let movedLeft = 2;
  for (let triesLeft = 20; ; triesLeft--) {
    try {
      return await build(present);
    } catch (error) {
      const isFailure = error instanceof WallError && (error.code === "WALL_FAILED" || error.code === "PATH_CHANGED");
      if (!isFailure) throw error;
      const remaining = withoutVanished(present);
      const isOfSocket = remaining !== present || namesSocket(error, present);
      if (!isOfSocket) refuseChanged(present);
      if (triesLeft === 0 || !(isOfSocket || (isMoved(error) && movedLeft-- > 0))) throw error;
      present = remaining;
    }
  }
}

/**
 * Whether the wall found another name or mount than it had built. Programs that write a file anew and rename it into
 * place (`useradd` does) take away a mount that lay on it, and then all is as it was.
 */
function isMoved({ code, details }: WallError): boolean {
  return code === "PATH_CHANGED" && details["complaint"] !== undefined;
}

/** Whether the wall complains of the path of a socket that is masked. */
function namesSocket({ details }: WallError, plan: Plan): boolean {
  const said = String(details["complaint"] ?? "");
  return plan.operations.some(
    (operation) => operation.kind === "mask" && operation.fleeting === true && said.includes(operation.target),
  );
}

/** Throws if a path was moved while the wall was being built: that is the cause of the failure. */
function refuseChanged(plan: Plan): void {
  using _pins = openPins(bindsOf(plan));
}

function withoutVanished(plan: Plan): Plan {
  const gone = plan.operations.flatMap((operation) =>
    operation.kind === "mask" && isVanished(operation) ? [operation] : [],
  );
  if (gone.length === 0) return plan;
  const isLeft = (operation: Operation) =>
    operation.kind === "mask" ? !gone.includes(operation) : !wasAround(operation, gone.map(hostPath));
  return { ...plan, operations: plan.operations.filter(isLeft) };
}

type Mask = Extract<Operation, { kind: "mask" }>;

function hostPath({ source, target }: Pick<Mask, "source" | "target">): string {
  return source ?? target;
}

function isVanished(mask: Mask): boolean {
  return mask.fleeting === true && !isSocket(hostPath(mask));
}

/** A directory that was held for the sake of a socket in it, and has gone with it. */
function wasAround(operation: Operation, paths: readonly string[]): boolean {
  if (operation.kind !== "bind" || operation.access !== "rw") return false;
  return paths.some((path) => path.startsWith(`${operation.source}/`)) && !existsSync(operation.source);
}

function isSocket(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSocket() ?? false;
}

/** What a wall says that cannot enforce a plan. */
export function gapError(gaps: readonly Gap[]): WallError {
  return new WallError(
    "GAP",
    [
      "This machine cannot enforce the whole plan, so nothing was started:",
      ...gaps.map(({ name, about }) => `  ${name}: ${about}`),
    ].join("\n"),
    { hint: gaps.map(({ remedy }) => remedy).join(" "), details: { gaps } },
  );
}

/** A wall that the agent can write is a wall that the agent owns the next time. */
function refuseWritableWall(plan: Plan, programs: readonly string[]): void {
  for (const program of programs) {
    if (!isGranted(plan, program)) continue;
    throw new WallError("BWRAP_MISSING", `${program} lies where the sandbox may write, so it cannot be trusted.`, {
      hint: "Install it for the whole system, or work in another directory.",
      details: { program },
    });
  }
}

function makeKept(plan: Plan): void {
  for (const directory of plan.kept) {
    try {
      if (!existsSync(directory)) mkdirSync(directory, { recursive: true, mode: 0o700 });
    } catch (cause) {
      throw new FilesystemError("FILESYSTEM", `The sandbox's own directory ${directory} cannot be made.`, {
        hint: "Make its parent writable, set XDG_CACHE_HOME to a directory that is, or switch off !@caches.",
        cause,
      });
    }
  }
}

/** Mounts that other sandboxes may rely on, too. */
function protectedPaths(plan: Plan): readonly string[] {
  return plan.operations.flatMap((operation) =>
    operation.kind === "bind" && operation.access === "ro" ? [operation.source] : [],
  );
}

/** The plan without names that could not be made, and with what the others stand for. */
function withHeld(plan: Plan, { impossible, identities }: Holding): Plan {
  if (impossible.size === 0 && identities.size === 0) return plan;
  return {
    ...plan,
    operations: plan.operations.flatMap((operation): readonly Operation[] => {
      if (operation.kind !== "bind") return [operation];
      if (impossible.has(operation.source)) return [];
      return [{ ...operation, identity: identities.get(operation.source) ?? operation.identity }];
    }),
  };
}
