import { setImmediate } from "node:timers/promises";
import { appeared } from "../keeper/aftermath.ts";
import { planAgent } from "../keeper/agent.ts";
import { startSession } from "../keeper/kept-session.ts";
import type { PlannedSandbox } from "../keeper/planned.ts";
import type { AgentOptions, Session } from "../keeper/session.ts";
import type { Exit } from "../wall/wall.ts";
import { attachPipes, attachTerminal, ordinarySize } from "./attach.ts";
import { lastValue, type Parsed } from "./command.ts";
import { detach } from "./detach.ts";
import { announce } from "./intention.ts";
import { untilAttached } from "./interrupt.ts";
import type { Io, Streams, Terminal } from "./io.ts";
import { showPlan, warn } from "./plan.ts";
import { showProgress } from "./progress.ts";
import { rememberRefusals } from "./refusals.ts";
import { agentRequest, parseTime } from "./sandbox-flags.ts";

export { announce } from "./intention.ts";

/** `podbot run`: an agent in a session that this process keeps, or leaves to another. */
export async function run(parsed: Parsed, io: Io): Promise<number> {
  const timeoutMs = parseTime(lastValue(parsed, "timeout"));
  const planned = await planAgent(agentRequest(parsed, io));
  if (showPlan(planned, parsed, io)) return 0;
  const quiet = parsed.switches.has("quiet");
  if (!quiet) announce(planned, io);
  if (parsed.switches.has("detach")) return detach(parsed, io);
  const status = await runSession(planned, parsed, timeoutMs, io);
  if (!quiet) warn(appeared(planned.plan), io);
  return status;
}

/** Runs the plan's command in a session, attached to the caller's terminal or streams, and ends the session with it. */
export function runSession(
  planned: PlannedSandbox,
  parsed: Parsed,
  timeoutMs: number | undefined,
  io: Io,
): Promise<number> {
  const quiet = parsed.switches.has("quiet");
  const asked = rememberRefusals();
  return untilAttached(io, async (signal, attached) => {
    const progress = showProgress(planned.plan, quiet, io);
    const place = findPlace(parsed.switches.has("no-tty"), io);
    // Where no session starts, nobody asks for it.
    place.catch(() => {});
    await using session = await startSession(planned, {
      dedicated: true,
      signal,
      onAsked: asked.remember,
      ...progress.options,
    }).finally(progress.done);
    if (!quiet) warn(session.warnings, io);
    const { code } = await runAgent(session, await place, { signal, ...(timeoutMs && { timeoutMs }) }, attached, io);
    // Whoever is tired of waiting for what the agent has left in the background may say so.
    const forget = io.onSignal(() => void session[Symbol.asyncDispose]());
    await session.stop();
    forget();
    if (!quiet) warn(asked.summary(), io);
    return code;
  });
}

/** Where the agent is attached: the caller's streams, and his terminal if they are on one. */
interface Place {
  readonly terminal: Terminal | null;
  readonly streams: Streams;
}

/** Node takes its time to make streams. So this is done while the wall is being built, and nobody else has work. */
async function findPlace(isPlain: boolean, io: Io): Promise<Place> {
  await setImmediate();
  const terminal = isPlain ? null : await io.terminal();
  return { terminal, streams: await io.streams() };
}

async function runAgent(
  session: Session,
  { terminal, streams }: Place,
  options: AgentOptions,
  attached: () => void,
  io: Io,
): Promise<Exit> {
  const { graceMs } = session.plan;
  if (terminal === null) {
    const agent = await session.run(options);
    attached();
    return attachPipes(agent, streams, io, graceMs);
  }
  const agent = await session.run(options, terminal.size() ?? ordinarySize);
  attached();
  return attachTerminal(agent, terminal, streams, io, graceMs);
}
