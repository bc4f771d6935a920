import { UsageError } from "../errors.ts";
import { findAudit } from "../keeper/audit-files.ts";
import { readAuditEntries } from "../keeper/audit-read.ts";
import { placesOf } from "../keeper/places.ts";
import { reloadSession } from "../keeper/sessions.ts";
import { suggestRules } from "../policy/suggest.ts";
import { toToml } from "../policy/suggest-toml.ts";
import type { Parsed } from "./command.ts";
import type { Io } from "./io.ts";
import { visible, visibleJson } from "./visible.ts";

/** `podbot policy suggest`: the rules that a run would have needed. `podbot policy reload`: those of now, for a session. */
export async function run(parsed: Parsed, io: Io): Promise<number> {
  const [verb, word] = parsed.words;
  if (verb === "suggest") return suggest(parsed, word, io);
  if (verb === "reload" && word !== undefined) {
    io.stdout.write(`${await reloadSession(io.env, word)}\n`);
    return 0;
  }
  const problem = verb === "reload" ? "which session is to reload its rules?" : `there is no ${verb}.`;
  throw new UsageError("USAGE", `podbot policy: ${problem}`, {
    hint: "Usage: podbot policy suggest [--hosts-only] [--json] [SESSION], podbot policy reload SESSION",
  });
}

function suggest(parsed: Parsed, word: string | undefined, io: Io): number {
  const { state } = placesOf(io.env);
  const id = findAudit(state, word);
  const suggestion = suggestRules(readAuditEntries(state, id), { hostsOnly: parsed.switches.has("hosts-only") });
  if (parsed.switches.has("json")) io.stdout.write(`${visibleJson({ session: id, ...suggestion }, 2)}\n`);
  else
    io.stdout.write(
      visible(`# What session ${id} has asked for. Read it before you allow it.\n\n${toToml(suggestion)}`),
    );
  return 0;
}
