import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { type JournalEvent, parseEvent } from "./event.ts";
import { type OutputEntry, parseOutput } from "./output.ts";
import { openNextOutput, openSegment, type Segment } from "./segment.ts";

const pollMs = 100;

export interface FollowOptions {
  /** Ends the reading, without an error. */
  readonly signal?: AbortSignal;
  /** Whether nothing more will be written. What was written by then is still read. */
  readonly isOver: () => boolean | Promise<boolean>;
}

/** What a session has written down, by `seq`. Torn and damaged lines are skipped and counted. */
export function readEvents(directory: string): { readonly events: readonly JournalEvent[]; readonly skipped: number } {
  const segment = openSegment(join(directory, "journal.jsonl"));
  if (segment === null) return { events: [], skipped: 0 };
  const { found, skipped } = parseAll(segment, parseEvent);
  return { events: found.sort((one, other) => one.seq - other.seq), skipped };
}

/** What the processes of a session have printed, as far as it is kept, in order. */
export function readOutput(directory: string): { readonly entries: readonly OutputEntry[]; readonly skipped: number } {
  const entries: OutputEntry[] = [];
  let skipped = 0;
  for (let segment = openNextOutput(directory, null); segment !== null; ) {
    // Opened before this one is closed, so that both cannot be the same.
    const next = openNextOutput(directory, segment.identity);
    const read = parseAll(segment, parseOutput);
    for (const entry of read.found) entries.push(entry);
    skipped += read.skipped;
    segment = next;
  }
  return { entries, skipped };
}

/**
 * The output from its oldest kept piece on, and what is added to it, until it is over. A reader that falls behind by
 * more than is kept goes on with the oldest piece there is.
 */
export async function* followOutput(directory: string, { signal, isOver }: FollowOptions): AsyncGenerator<OutputEntry> {
  let segment: Segment | null = null;
  try {
    while (!signal?.aborted) {
      // Asked before the reading: what was written before the end is then read after it.
      const over = await isOver();
      for (;;) {
        if (segment !== null) yield* entriesOf(segment, signal);
        const next = openNextOutput(directory, segment?.identity ?? null);
        if (next === null) break;
        // Once there is a next one, nothing is added to this one; but something may have been until then.
        if (segment !== null) yield* entriesOf(segment, signal);
        segment?.[Symbol.dispose]();
        segment = next;
      }
      if (over) return;
      await wait(pollMs, undefined, signal === undefined ? {} : { signal }).catch(() => {});
    }
  } finally {
    segment?.[Symbol.dispose]();
  }
}

function* entriesOf(segment: Segment, signal: AbortSignal | undefined): Generator<OutputEntry> {
  for (const line of segment.read()) {
    if (signal?.aborted) return;
    const entry = parseOutput(line);
    if (entry !== null) yield entry;
  }
}

function parseAll<T>(segment: Segment, parse: (line: string) => T | null): { found: T[]; skipped: number } {
  try {
    const parsed = [...segment.read()].map(parse);
    const found = parsed.filter((one): one is Awaited<T> & NonNullable<T> => one !== null);
    return { found, skipped: parsed.length - found.length + (segment.isTorn() ? 1 : 0) };
  } finally {
    segment[Symbol.dispose]();
  }
}
