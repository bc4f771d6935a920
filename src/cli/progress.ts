import type { Furnishing } from "../keeper/furnish.ts";
import type { SessionOptions } from "../keeper/session.ts";
import type { Plan } from "../plan/plan.ts";
import { changingLine } from "./changing-line.ts";
import type { Io } from "./io.ts";
import { warn } from "./plan.ts";

/** What the owner sees of a container's start: lines that stay, and on a terminal one that goes when all is ready. */
export interface Progress {
  readonly options: Pick<SessionOptions, "onFurnished" | "onStep">;
  /** The agent takes over: nothing of ours may stand in its way. */
  done(): void;
}

const nothing: Progress = { options: {}, done: () => {} };

export function showProgress(plan: Plan, quiet: boolean, io: Io): Progress {
  const { container, clone } = plan;
  if (quiet || (container === null && clone === null)) return nothing;
  const { say, show, clear } = changingLine(io);
  return {
    options: {
      onStep: (step) => {
        if (step !== "listening" || container === null) return;
        const { flavour, version, rootless, image } = container.engine;
        show(`starting ${image.name} on ${flavour} ${version}${rootless ? ", rootless" : ""}`);
      },
      onFurnished: (done: Furnishing) => {
        clear();
        if (done.kind === "warning") warn([done.text], io);
        else if (done.kind === "cloning") show(`cloning ${done.clone.repository}, ${done.clone.branch}`);
        else if (done.kind === "credentials-copied") say(`copied to the container: ${done.paths.join(", ")}`);
      },
    },
    done: clear,
  };
}
