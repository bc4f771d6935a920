/*
 * Starts a session from the library and kills somebody at one of its steps. Bundled by the tests and run as
 *
 *   node driver.mjs '{"step":…,"victim":…,"detached":…,"command":[…]}'
 */
import { readFileSync } from "node:fs";
import { runErrand } from "./errand.ts";

export type Victim = "keeper" | "bwrap" | "warden" | "agent";

/** One that is just becoming this program has no words yet. */
function childOf(pid: number, name: string): number {
  for (const end = performance.now() + 10_000; performance.now() < end; ) {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number);
    const found = children.find((child) => readFileSync(`/proc/${child}/cmdline`, "latin1").split("\0")[0] === name);
    if (found !== undefined) return found;
  }
  throw new Error(`process ${pid} has no child ${name}`);
}

/** The box, from outside in. */
function find(who: Victim, program: string): number {
  if (who === "keeper") return process.pid;
  const bwrap = childOf(process.pid, "bwrap");
  if (who === "bwrap") return bwrap;
  const warden = childOf(bwrap, "/run/podbot/warden");
  if (who === "warden") return warden;
  return childOf(childOf(warden, "/run/podbot/warden"), program);
}

await runErrand(find);
