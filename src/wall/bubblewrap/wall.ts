import { fstatSync } from "node:fs";
import { WallError } from "../../errors.ts";
import { thisHost } from "../../machine/host.ts";
import type { NativePrograms } from "../../machine/programs.ts";
import type { Plan } from "../../plan/plan.ts";
import { type Holding, sweepHeld } from "../held.ts";
import { bindsOf, openPins } from "../pin.ts";
import { buildPossible, prepare } from "../prepare.ts";
import { type SeccompArch, seccompProgram } from "../seccomp.ts";
import type { Birth, Box, BoxBirth, Exit, Gap, SessionId, Stdio, Wall } from "../wall.ts";
import { executionFailure, wallFailure } from "./complaint.ts";
import { findGaps } from "./gaps.ts";
import { launch } from "./launch.ts";
import { writeLetter } from "./letter.ts";
import { renderScript } from "./script.ts";

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
    const { bwrap, native } = this.#options;
    refuseDirectories(stdio);
    const holding = await this.#prepare(plan);
    try {
      return await buildPossible(plan, holding, async (possible) => {
        using pins = openPins(bindsOf(possible));
        const letter = writeLetter(possible, filterOf(plan), birth.env, pins, { trust: birth.trust ?? [] });
        const programs = { native, bwrap };
        const launched = launch(programs, letter, pins, birth, stdio, plan.graceMs);
        const { exit, ran, complaint } = await launched.catch(afterHalfBuilt);
        if (!ran) await afterHalfBuilt(wallFailure(complaint));
        const failure = executionFailure(complaint, exit.code, plan);
        if (failure !== null) throw failure;
        return exit;
      });
    } finally {
      holding[Symbol.dispose]();
    }
  }

  /** Builds the box with the warden in it. */
  async start(plan: Plan, birth: BoxBirth): Promise<Box> {
    // Not for `podbot sandbox`, which must not wait for sockets to be loaded that it does not use.
    const { startBox } = await import("./box.ts");
    const holding = await this.#prepare(plan);
    try {
      const box = await buildPossible(plan, holding, (possible) =>
        startBox(this.#options, possible, filterOf(plan), birth),
      );
      box.exited.finally(() => holding[Symbol.dispose]()).catch(() => {});
      return box;
    } catch (error) {
      holding[Symbol.dispose]();
      return afterHalfBuilt(error);
    }
  }

  async list(): Promise<readonly SessionId[]> {
    const { listBoxes } = await import("./boxes.ts");
    return [...listBoxes(thisHost().uid).keys()];
  }

  async destroy(id: SessionId): Promise<void> {
    const { destroyBox } = await import("./boxes.ts");
    await destroyBox(thisHost().uid, id);
  }

  /** Finishes what killed ones could not: half a box is ended, and names held in the owner's directories go. */
  async sweep(): Promise<void> {
    await endHalfBuilt();
    sweepHeld(this.#options.heldDirectory);
  }

  async #prepare(plan: Plan): Promise<Holding> {
    const { bwrap, native, heldDirectory } = this.#options;
    return prepare(plan, { gaps: await this.check(plan), programs: [bwrap, native.launch], heldDirectory });
  }

  /** A script that does the same by path, for people to read and paste. */
  script(plan: Plan): string {
    return renderScript(plan, filterOf(plan), this.#options.bwrap);
  }
}

/**
 * A bubblewrap that was killed early has left its child, which would wait for it for ever. Asked for where something has
 * failed, or is swept: it looks at every process.
 */
async function endHalfBuilt(): Promise<void> {
  const boxes = await import("./boxes.ts");
  await boxes.endHalfBuilt(thisHost().uid);
}

async function afterHalfBuilt(error: unknown): Promise<never> {
  await endHalfBuilt().catch(() => {});
  throw error;
}

function filterOf(plan: Plan): Uint8Array {
  return seccompProgram({ arch: thisHost().arch as SeccompArch, nesting: plan.nesting });
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
