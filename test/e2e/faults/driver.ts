/*
 * Starts a session on an engine through the library and kills one process at one step. Bundled by the tests and run as
 *
 *   node driver.mjs '{"step":…,"victim":…,"detached":…,"command":[…]}'
 */
import { readdirSync, readFileSync } from "node:fs";
import { runErrand } from "../../faults/errand.ts";

export type Victim = "keeper" | "warden" | "agent";

const warden = "/run/podbot/warden";

interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly argv: readonly string[];
}

/** Processes in containers that mount this workspace. */
function inside(): readonly Process[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        if (!readFileSync(`/proc/${name}/mountinfo`, "utf8").includes(`${process.cwd()} `)) return [];
        const stat = readFileSync(`/proc/${name}/stat`, "latin1");
        const parent = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
        return [{ pid: Number(name), parent, argv: readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0") }];
      } catch {
        return [];
      }
    });
}

/** The victim's pid, as seen from outside the container. */
function find(who: Victim, program: string): number {
  if (who === "keeper") return process.pid;
  const all = inside();
  const wardens = all.filter(({ argv }) => argv[0] === warden);
  const first = wardens.find(({ parent }) => !wardens.some(({ pid }) => pid === parent));
  const found = who === "warden" ? first : all.find(({ argv }) => argv[0] === program);
  if (found === undefined) throw new Error(`there is no ${who}`);
  return found.pid;
}

await runErrand(find);
