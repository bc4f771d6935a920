import { type PodbotError, WallError } from "../../errors.ts";
import { namespaceBars } from "../../machine/namespaces.ts";
import type { Plan } from "../../plan/plan.ts";
import { doorsFailure } from "../doors-failure.ts";
import { changed } from "../pin.ts";
import { gapByPath } from "./gaps.ts";

/** Numbers of <errno.h> that mean "there is no such program". */
const absent = [2, 20];

/** What the first program inside says when the command could not be executed. */
export function executionFailure(complaint: string, code: number, plan: Plan): PodbotError | null {
  const match = /podbot-enter: exec: (\d+)\n/.exec(complaint);
  if (match === null || (code !== 126 && code !== 127)) return null;
  const [command] = plan.command;
  if (absent.includes(Number(match[1]))) {
    return new WallError("COMMAND_NOT_FOUND", `${JSON.stringify(command)} does not exist inside the sandbox.`, {
      hint: "Check the name; a program outside the plan's paths can be let in with --ro PATH.",
      details: { command },
    });
  }
  return new WallError("COMMAND_NOT_EXECUTABLE", `${JSON.stringify(command)} cannot be executed inside the sandbox.`, {
    hint: "It must be an executable file, not a directory, and its interpreter must exist.",
    details: { command, errno: Number(match[1]) },
  });
}

/** Why the wall could not be built, from bubblewrap's own words. */
export function wallFailure(complaint: string): PodbotError {
  const said = complaint.trim().slice(0, 2_000) || "bubblewrap ended without a word";
  const details = { complaint: said };
  // If bubblewrap itself has failed, the doors failed only as a consequence.
  if (/^(podbot-gate: |podbot-enter: the box has no doors)/m.test(said) && !/^bwrap: /m.test(said)) {
    return doorsFailure(said);
  }
  const moved = /^podbot-(?:launch|enter): changed: (.*): ([^:]*)$/ms.exec(said);
  if (moved !== null) return changed(moved[1] as string, moved[2] as string, details);
  if (/^podbot-launch: cannot (?:keep|copy|mount|make a file system|change)/m.test(said)) {
    return new WallError("GAP", `This machine does not let Podbot build the mounts by descriptor: ${said}`, {
      hint: gapByPath.remedy,
      details,
    });
  }
  if (/landlock/.test(said)) {
    return new WallError("GAP", `The kernel refused to set abstract sockets apart: ${said}`, {
      hint: 'Use --network none, or accept the gap: sandbox.accept_gaps = ["abstract-sockets"].',
      details,
    });
  }
  if (/Unknown option/.test(said)) {
    return new WallError("BWRAP_TOO_OLD", `The installed bubblewrap is too old: ${said}`, {
      hint: "Install bubblewrap 0.8 or later, with --bind-fd (Debian 12 has it; upstream since 0.10).",
      details,
    });
  }
  if (/(uid map|No permissions to creat|new namespace|user namespace|Creating new namespace)/i.test(said)) {
    const bars = namespaceBars();
    return new WallError("USERNS_REFUSED", `This machine refuses user namespaces: ${said}`, {
      hint:
        bars.map(({ what, remedy }) => `${what}: ${remedy}`).join("; ") ||
        "Run `podbot doctor` to see what stands in the way.",
      details,
    });
  }
  return new WallError("WALL_FAILED", `The wall could not be built: ${said}`, {
    hint: "Nothing was started. `--dry-run` shows the plan and `podbot doctor` what this machine can do.",
    details: hasLostMount(said) ? { ...details, transient: true } : details,
  });
}

/**
 * bubblewrap copies the machine's mounts and then sets flags on each. It fails if another program unmounts one in
 * between, as engines do when a container ends.
 */
function hasLostMount(said: string): boolean {
  return /^bwrap: .*Unable to apply mount flags: remount .*: (Invalid argument|No such file or directory)$/m.test(said);
}
