import { findAudit } from "../keeper/audit-files.ts";
import type { AuditLine } from "../keeper/audit-line.ts";
import { readAudit } from "../keeper/audit-read.ts";
import { placesOf } from "../keeper/places.ts";
import { auditTable } from "./audit-table.ts";
import type { Parsed } from "./command.ts";
import type { Io } from "./io.ts";
import { visible } from "./visible.ts";

/** `podbot audit`: what a run has asked for at its doors, and what became of it. */
export async function run(parsed: Parsed, io: Io): Promise<number> {
  const { state } = placesOf(io.env);
  const id = findAudit(state, parsed.words[0]);
  const isJson = parsed.switches.has("json");
  const print = isJson ? printJson(io) : auditTable(io, { all: parsed.switches.has("all") });
  const interrupt = new AbortController();
  const forget = io.onSignal(() => interrupt.abort());
  let isEmpty = true;
  try {
    const reading = readAudit(state, id, { follow: parsed.switches.has("follow"), signal: interrupt.signal });
    for await (const lines of reading) {
      isEmpty = false;
      print(lines);
      if (io.stdout.isLeft) break;
    }
  } finally {
    forget();
  }
  if (isEmpty && !isJson && !interrupt.signal.aborted) io.stdout.write(`Session ${id} has asked for nothing.\n`);
  return 0;
}

/** The lines as they stand in the file; what plays with a terminal is escaped, and means the same. */
function printJson(io: Io): (lines: readonly AuditLine[]) => void {
  return (lines) => {
    for (const { text } of lines) io.stdout.write(`${visible(text, "\\u00")}\n`);
  };
}
