import { SessionError } from "../errors.ts";
import { planAgent } from "../keeper/agent.ts";
import { startSession } from "../keeper/kept-session.ts";
import type { Session } from "../keeper/session.ts";
import { allValues, lastValue, type Parsed } from "./command.ts";
import { announce } from "./intention.ts";
import { untilAttached } from "./interrupt.ts";
import type { Io } from "./io.ts";
import { showPlan, warn } from "./plan.ts";
import { agentRequest, parseTime } from "./sandbox-flags.ts";
import { visibleJson } from "./visible.ts";

/** The variable by which `podbot run --detach` hands on what was given with --env. */
export const handedOn = "PODBOT_HANDED_ON";

/** `podbot keep`: a session without a terminal, as long as its agent runs; what it prints is for `podbot logs`. */
export async function run(given: Parsed, caller: Io): Promise<number> {
  const { [handedOn]: words = "[]", ...env } = caller.env;
  const io = { ...caller, env };
  const values = [...allValues(given, "env"), ...(JSON.parse(words) as readonly string[])];
  const parsed = { ...given, values: new Map([...given.values, ["env", values]]) };
  const timeoutMs = parseTime(lastValue(parsed, "timeout"));
  const planned = await planAgent(agentRequest(parsed, io));
  showPlan(planned, parsed, io);
  if (!parsed.switches.has("quiet")) announce(planned, io);
  return untilAttached(io, async (signal, attached) => {
    await using session = await startSession(planned, { detached: true, dedicated: true, signal });
    const agent = await session.run({ signal, ...(timeoutMs && { timeoutMs }) });
    agent.stdin.end();
    agent.stdout.resume();
    agent.stderr.resume();
    const forget = io.onSignal(() => void session.stop());
    attached();
    tell(session, parsed, io);
    const { code } = await agent.exited.catch((error: unknown) => {
      // An agent that ignores the request to end is killed with its sandbox, which then cannot report its exit.
      if (session.isStopped && error instanceof SessionError && error.code === "BOX_LOST") return { code: 137 };
      throw error;
    });
    forget();
    await session.stop();
    return code;
  });
}

/** The one line that whoever started this waits for. */
function tell({ id, plan, warnings }: Session, parsed: Parsed, io: Io): void {
  if (!parsed.switches.has("quiet")) warn(warnings, io);
  const session = { id, agent: plan.command[0], cwd: plan.cwd, command: plan.command, warnings };
  io.stdout.write(parsed.switches.has("json") ? `${visibleJson(session)}\n` : `${id}\n`);
}
