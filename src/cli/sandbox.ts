import { UsageError } from "../errors.ts";
import { appeared } from "../keeper/aftermath.ts";
import type { OnAsked } from "../keeper/outside.ts";
import type { PlannedSandbox } from "../keeper/planned.ts";
import { planSandbox } from "../keeper/sandbox.ts";
import type { Exit } from "../wall/wall.ts";
import { lastValue, type Parsed } from "./command.ts";
import type { Io } from "./io.ts";
import { showPlan, warn } from "./plan.ts";
import { rememberRefusals } from "./refusals.ts";
import { parseTime, sandboxOptions } from "./sandbox-flags.ts";

/** `podbot sandbox`: one command behind a wall; behind bubblewrap on the caller's own descriptors. */
export async function run(parsed: Parsed, io: Io): Promise<number> {
  const [program, ...args] = parsed.rest;
  if (program === undefined) {
    throw new UsageError("USAGE", "podbot sandbox: there is no command to run.", {
      hint: "For example: podbot sandbox -- npm test",
    });
  }
  const timeoutMs = parseTime(lastValue(parsed, "timeout"));
  const options = { ...sandboxOptions(parsed, io), command: [program, ...args] as const };
  const planned = await planSandbox(options);
  if (showPlan(planned, parsed, io)) return 0;
  if (planned.plan.wall === "engine") {
    const { announce, runSession } = await import("./run.ts");
    if (!parsed.switches.has("quiet")) announce(planned, io);
    const status = await runSession(planned, parsed, timeoutMs, io);
    if (!parsed.switches.has("quiet")) warn(appeared(planned.plan), io);
    return status;
  }
  const asked = rememberRefusals();
  const exit = await runWithin(planned, timeoutMs, asked.remember, io);
  if (!parsed.switches.has("quiet")) warn([...asked.summary(), ...appeared(planned.plan)], io);
  return exit === "timeout" ? 124 : exit.code;
}

async function runWithin(
  planned: PlannedSandbox,
  timeoutMs: number | undefined,
  onAsked: OnAsked,
  io: Io,
): Promise<Exit | "timeout"> {
  const birth = { onSignal: io.onSignal, onAsked };
  if (timeoutMs === undefined) return planned.run(io.descriptors, birth);
  const clock = new AbortController();
  const timer = setTimeout(() => clock.abort(), timeoutMs);
  try {
    const exit = await planned.run(io.descriptors, { ...birth, signal: clock.signal });
    return clock.signal.aborted ? "timeout" : exit;
  } finally {
    clearTimeout(timer);
  }
}
