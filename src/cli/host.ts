import type { Writable } from "node:stream";
import { appeared } from "../keeper/aftermath.ts";
import { type HostedSession, hostPlanned } from "../keeper/host.ts";
import { type PlannedHost, planHost } from "../keeper/host-plan.ts";
import { makeLines } from "../keeper/host-words.ts";
import type { Signal } from "../wall/wall.ts";
import type { Parsed } from "./command.ts";
import { announce } from "./intention.ts";
import { statuses, untilAttached } from "./interrupt.ts";
import type { Io } from "./io.ts";
import { painter } from "./paint.ts";
import { showPlan, warn } from "./plan.ts";
import { showProgress } from "./progress.ts";
import { rememberRefusals } from "./refusals.ts";
import { agentRequest } from "./sandbox-flags.ts";
import { visibleLine } from "./visible.ts";

type Say = (line: string) => void;

/**
 * `podbot host`: an agent that speaks its protocol on our standard input and output. Nothing of Podbot's own ever goes
 * to standard output: whoever reads it would take it for the agent's.
 */
export async function run(parsed: Parsed, io: Io): Promise<number> {
  const planned = await planHost(agentRequest(parsed, io));
  tellTrust(planned, io);
  if (showPlan(planned, parsed, io)) return 0;
  const quiet = parsed.switches.has("quiet");
  if (!quiet) announce(planned, io);
  if (!quiet && planned.isProtocolAssumed) sayTo(io, "it speaks the Agent Client Protocol: --agent-mode acp");
  if (!quiet && (await io.terminal()) !== null)
    sayTo(io, "it waits for a client's messages, which editors send; Ctrl-C ends it");
  const asked = rememberRefusals();
  const { input, output, errors, isAbandoned } = await io.channel();
  // Whoever does not read any more is noticed elsewhere.
  for (const stream of [input, output, errors]) stream.on("error", () => {});
  // From here on nobody may wait for whoever does not read what is said.
  const aside: Io = { ...io, stderr: { ...io.stderr, write: (text) => void tryToWrite(errors, text) } };
  try {
    const status = await untilAttached(io, async (signal, attached) => {
      const progress = showProgress(planned.plan, quiet, aside);
      const options = { dedicated: true, signal, errors, isAbandoned, onAsked: asked.remember, ...progress.options };
      const session = await hostPlanned(planned, { input, output }, options).finally(progress.done);
      attached();
      if (!quiet)
        warn(
          session.warnings.filter((text) => !planned.warnings.includes(text)),
          aside,
        );
      return attend(session, quiet ? () => {} : (line) => sayTo(aside, line), io);
    });
    if (!quiet) warn([...asked.summary(), ...appeared(planned.plan)], aside);
    await leave(errors);
    return status;
  } finally {
    input.destroy();
    output.destroy();
  }
}

/** How much may wait to be read. */
const mostAside = 1024 * 1024;
/** How long a reader of our last words may take. */
const lastWordsMs = 500;

function sayTo(io: Pick<Io, "stderr">, line: string): void {
  io.stderr.write(`podbot: ${visibleLine(line)}\n`);
}

function tryToWrite(to: Writable, text: string): void {
  if (!to.destroyed && to.writableLength < mostAside) to.write(text);
}

async function leave(errors: Writable): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, lastWordsMs);
  });
  await Promise.race([over, new Promise<void>((resolve) => errors.write("", () => resolve()))]);
  clearTimeout(timer);
  errors.destroy();
}

/** Said whatever else is not: whoever reads on must know what the wall does not hold. */
function tellTrust({ trustChanges }: PlannedHost, io: Io): void {
  const paint = painter(io.stderr, io.env);
  for (const text of trustChanges) {
    io.stderr.write(`${paint("yellow", "podbot: trust boundary:")} ${visibleLine(text)}\n`);
  }
}

/** Until the agent has ended, or somebody wants it to. Who asks twice does not want to wait. */
async function attend(session: Omit<HostedSession, "protocolIo">, say: Say, io: Io): Promise<number> {
  let first: Signal | null = null;
  const forget = io.onSignal((signal) => {
    if (first === null) {
      first = signal;
      void session.stop();
    } else void session[Symbol.asyncDispose]();
  });
  try {
    const told = tell(session, say);
    const { code } = await session.ended.catch((error: unknown) => {
      if (first === null) throw error;
      return { code: 0 };
    });
    await told;
    return first === null ? code : statuses[first];
  } finally {
    forget();
    await session[Symbol.asyncDispose]();
  }
}

async function tell({ events }: Pick<HostedSession, "events">, say: Say): Promise<void> {
  const lines = makeLines();
  for await (const event of events) {
    const line = lines(event);
    if (line !== null) say(line);
  }
}
