import { existsSync, fstatSync, mkdirSync } from "node:fs";
import { FilesystemError, WallError } from "../../errors.ts";
import { thisHost } from "../../machine/host.ts";
import type { NativePrograms } from "../../machine/programs.ts";
import { isGranted } from "../../plan/access.ts";
import type { Plan } from "../../plan/plan.ts";
import type { Birth, Exit, Gap, Stdio, Wall } from "../wall.ts";
import { executionFailure, wallFailure } from "./complaint.ts";
import { findGaps } from "./gaps.ts";
import { holdNames } from "./held.ts";
import { launch } from "./launch.ts";
import { writeLetter } from "./letter.ts";
import { openPins } from "./pin.ts";
import { renderScript } from "./script.ts";
import { type SeccompArch, seccompProgram } from "./seccomp.ts";

export interface BubblewrapOptions {
  /** Resolved path of bwrap. */
  readonly bwrap: string;
  readonly native: NativePrograms;
  /** Where claims on held names are recorded. */
  readonly heldDirectory: string;
}

/** The wall that needs no daemon and no image: bubblewrap on this machine. */
export class BubblewrapWall implements Wall {
  readonly kind = "bubblewrap";
  readonly #options: BubblewrapOptions;

  constructor(options: BubblewrapOptions) {
    this.#options = options;
  }

  async check(plan: Plan): Promise<readonly Gap[]> {
    return findGaps(plan, thisHost());
  }

  /** Builds the box, runs the plan's command in it on the caller's own descriptors, and leaves nothing behind. */
  async run(plan: Plan, birth: Birth, stdio: Stdio): Promise<Exit> {
    const { bwrap, native, heldDirectory } = this.#options;
    refuseWritableWall(plan, [bwrap, native.launch]);
    refuseDirectories(stdio);
    const gaps = await this.check(plan);
    if (gaps.length > 0) throw gapError(gaps);
    makeKept(plan);
    const holding = holdNames(heldDirectory, plan.held, protectedPaths(plan));
    try {
      const possible = without(plan, holding.impossible);
      const letter = writeLetter(possible, filterOf(plan), birth.env);
      const pins = openPins(letter.pins);
      try {
        const { exit, ran, complaint } = await launch(
          { native, bwrap },
          letter,
          pins.descriptors,
          birth,
          stdio,
          plan.graceMs,
        );
        if (!ran) throw wallFailure(complaint);
        const failure = executionFailure(complaint, exit.code, plan);
        if (failure !== null) throw failure;
        return exit;
      } finally {
        pins[Symbol.dispose]();
      }
    } finally {
      holding[Symbol.dispose]();
    }
  }

  /** A script that does the same by path, for people to read and paste. */
  script(plan: Plan): string {
    return renderScript(plan, filterOf(plan), this.#options.bwrap);
  }
}

function filterOf(plan: Plan): Uint8Array {
  return seccompProgram({ arch: thisHost().arch as SeccompArch, nesting: plan.nesting });
}

function gapError(gaps: readonly Gap[]): WallError {
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

/** A descriptor of a directory leads to all below it, past every mount. */
function refuseDirectories(stdio: Stdio): void {
  const at = stdio.findIndex((descriptor) => fstatSync(descriptor).isDirectory());
  if (at < 0) return;
  const name = ["standard input", "standard output", "standard error"][at];
  throw new WallError("PATH_REFUSED", `The command's ${name} is a directory, through which it would reach all below.`, {
    hint: "Redirect it from a file, a pipe or /dev/null.",
  });
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
    operation.kind === "bind" && operation.access === "ro" ? [operation.target] : [],
  );
}

function without(plan: Plan, impossible: ReadonlySet<string>): Plan {
  if (impossible.size === 0) return plan;
  return {
    ...plan,
    operations: plan.operations.filter((operation) => operation.kind !== "bind" || !impossible.has(operation.source)),
  };
}
