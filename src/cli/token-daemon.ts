import { UsageError } from "../errors.ts";
import { type DaemonEvent, serveTokens } from "../keeper/token-daemon.ts";
import type { Parsed } from "./command.ts";
import type { Io } from "./io.ts";
import { visibleJson, visibleLine } from "./visible.ts";

/** `podbot token-daemon`: keeps the tokens of sessions fresh whose keepers do not, until it is told to end. */
export async function run(parsed: Parsed, io: Io): Promise<number> {
  const all = parsed.switches.has("all");
  if (all === parsed.words.length > 0) {
    throw new UsageError("USAGE", all ? "--all and sessions by name exclude each other." : "Whose tokens?", {
      hint: "Usage: podbot token-daemon --all | podbot token-daemon SESSION…",
    });
  }
  const over = new AbortController();
  const forget = io.onSignal(() => over.abort());
  const json = parsed.switches.has("json");
  try {
    await serveTokens({
      env: io.env,
      which: all ? "all" : parsed.words,
      signal: over.signal,
      report: (event) => tell(event, json, io),
    });
    // Whoever ends a daemon by a signal means well.
    return 0;
  } finally {
    forget();
  }
}

function tell(event: DaemonEvent, json: boolean, io: Io): void {
  if (json) {
    io.stdout.write(`${visibleJson(toJson(event))}\n`);
    return;
  }
  const line = visibleLine(`${event.session}: ${inWords(event)}`);
  if (isTrouble(event)) io.stderr.write(`podbot: warning: ${line}\n`);
  else io.stdout.write(`${line}\n`);
}

function isTrouble({ kind }: DaemonEvent): boolean {
  return kind === "failed" || kind === "refused";
}

function inWords(event: DaemonEvent): string {
  switch (event.kind) {
    case "taken":
      return "its token is kept fresh from here";
    case "left":
      return "its token is not kept fresh from here any more";
    case "written":
      return `a token that is good until ${event.expiresAt.toISOString()}`;
    case "clock-jumped":
      return `the clock has jumped by ${Math.round(event.byMs / 1_000)} s`;
    default:
      return messageOf(event.error);
  }
}

function toJson(event: DaemonEvent): unknown {
  if (event.kind !== "failed" && event.kind !== "refused") return event;
  const { error, ...rest } = event;
  return { ...rest, error: messageOf(error) };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
