import { PodbotError, UsageError } from "../errors.ts";
import { type Stopped, stopSessions } from "../keeper/sessions.ts";
import { lastValue, type Parsed } from "./command.ts";
import { reportFailure } from "./failure.ts";
import type { Io } from "./io.ts";
import { warn } from "./plan.ts";
import { parseTime } from "./sandbox-flags.ts";
import { visibleJson } from "./visible.ts";

const ordinaryGraceMs = 10_000;

/** `podbot stop`: afterwards nothing is left of the sessions that were named. */
export async function run(parsed: Parsed, io: Io): Promise<number> {
  const which = whichOf(parsed);
  const graceMs = parseTime(lastValue(parsed, "time"), "time") ?? ordinaryGraceMs;
  const stopped = await stopSessions(io.env, which, graceMs);
  const json = parsed.switches.has("json");
  if (json) io.stdout.write(`${visibleJson(stopped.map(toJson), 2)}\n`);
  let status = 0;
  for (const { id, failure, warnings } of stopped) {
    if (!json)
      warn(
        warnings.map((text) => `session ${id}: ${text}`),
        io,
      );
    if (failure !== null) status = reportFailure(failure, io, json);
    else if (!json) io.stdout.write(`${id}\n`);
  }
  return status;
}

function whichOf({ switches, words }: Parsed): "all" | "ended" | readonly string[] {
  const chosen = [
    ...(["all", "ended"] as const).filter((name) => switches.has(name)),
    ...(words.length > 0 ? [words] : []),
  ];
  const [which] = chosen;
  if (which !== undefined && chosen.length === 1) return which;
  const problem = which === undefined ? "stop what?" : "--all, --ended and ids exclude each other.";
  throw new UsageError("USAGE", `podbot stop: ${problem}`, {
    hint: "Name sessions by id (`podbot ps` lists them), or say --all or --ended.",
  });
}

function toJson({ id, failure, warnings }: Stopped): unknown {
  const code = failure instanceof PodbotError ? failure.code : "INTERNAL";
  return failure === null ? { id, stopped: true, warnings } : { id, stopped: false, code, warnings };
}
