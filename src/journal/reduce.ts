import type { JournalEvent } from "./event.ts";

export interface ProcessSlice {
  readonly argv: readonly string[];
  readonly tty: boolean;
  /** Null where the journal does not hold its beginning. */
  readonly startedAt: string | null;
  readonly exit: { readonly at: string; readonly code: number; readonly killed: boolean } | null;
}

/** What a session's events amount to. */
export interface JournalState {
  readonly session: {
    readonly startedAt: string | null;
    readonly endedAt: string | null;
    readonly code: number | null;
  };
  readonly processes: ReadonlyMap<number, ProcessSlice>;
  readonly warnings: readonly { readonly at: string; readonly text: string }[];
  /** Bytes that could not be written. */
  readonly lost: number;
}

/** Goes by the order of the events; what the clock said is only passed on. */
export function reduceJournal(events: readonly JournalEvent[]): JournalState {
  return {
    session: reduceSession(events),
    processes: reduceProcesses(events),
    warnings: events.flatMap((event) => (event.kind === "warning" ? [{ at: event.at, text: event.text }] : [])),
    lost: events.reduce((sum, event) => sum + (event.kind === "journal-lost" ? event.bytes : 0), 0),
  };
}

function reduceSession(events: readonly JournalEvent[]): JournalState["session"] {
  const started = events.find(({ kind }) => kind === "session-started");
  const ended = events.findLast((event) => event.kind === "session-ended");
  return { startedAt: started?.at ?? null, endedAt: ended?.at ?? null, code: ended?.code ?? null };
}

function reduceProcesses(events: readonly JournalEvent[]): ReadonlyMap<number, ProcessSlice> {
  const processes = new Map<number, ProcessSlice>();
  for (const event of events) {
    if (event.kind === "process-started") {
      const { argv, tty, at } = event;
      processes.set(event.process, { argv, tty, startedAt: at, exit: null });
    } else if (event.kind === "process-exited") {
      // Its beginning may be among what was lost.
      const known = processes.get(event.process) ?? { argv: [], tty: false, startedAt: null };
      const { at, code, killed } = event;
      processes.set(event.process, { ...known, exit: { at, code, killed } });
    }
  }
  return processes;
}
