import { setTimeout as wait } from "node:timers/promises";
import type { AuditEntry } from "../gateway/audit.ts";
import { openSegment, type Segment } from "../journal/segment.ts";
import { lookAt } from "../machine/process-mark.ts";
import { isDamaged, type SessionId } from "../registry/record.ts";
import { readRecord } from "../registry/store.ts";
import { auditFile, isDead } from "./audit-files.ts";
import { type AuditHeader, type AuditLine, parseAuditLine, type Unended } from "./audit-line.ts";
import { lineOf, Openings } from "./audit-unended.ts";

const pollMs = 100;
const batchLines = 1_000;

/** What a run has asked for so far, what has no end yet or lost it included. Torn and damaged lines are skipped. */
export function* readAuditEntries(state: string, id: SessionId): Generator<AuditEntry> {
  const segment = openSegment(auditFile(state, id));
  if (segment === null) return;
  const openings = new Openings();
  try {
    for (const line of linesOf(segment)) {
      openings.take(line);
      if (line.kind === "entry") yield line.entry;
    }
    for (const { state: _, ...opening } of openings.list(false))
      yield { ...opening, verdict: "allowed", durationMs: 0 };
  } finally {
    segment[Symbol.dispose]();
  }
}

export interface AuditReading {
  /** Whether to go on until the run is over. */
  readonly follow: boolean;
  /** Ends the reading, without an error. */
  readonly signal: AbortSignal;
}

/**
 * The lines of an audit, some at a time, and what is open or was lost. A run is over when its audit says so, or when the
 * process that wrote it is gone; one that has asked for nothing yet, when its record says so.
 */
export async function* readAudit(
  state: string,
  id: SessionId,
  { follow, signal }: AuditReading,
): AsyncGenerator<readonly AuditLine[]> {
  let segment: Segment | null = null;
  let header: AuditHeader | null = null;
  const openings = new Openings();
  const told = new Set<string>();
  try {
    while (!signal.aborted) {
      const known: AuditHeader | null = header;
      // Asked before the reading: what was written before the end is then read after it.
      const isOver = known === null ? hasNoKeeper(state, id) : isDead(known);
      let isEnded = false;
      segment ??= openSegment(auditFile(state, id));
      let last: readonly AuditLine[] = [];
      for (const batch of segment === null ? [] : batchesOf(segment)) {
        for (const line of batch) {
          // A keeper that comes back to its box begins again.
          if (line.kind === "header") [header, isEnded] = [line.header, false];
          if (line.kind === "ended") isEnded = true;
          openings.take(line);
        }
        if (last.length > 0) yield last;
        last = batch;
        if (signal.aborted) break;
      }
      const isDone = isEnded || (isOver && header === known);
      // One more reading, since it may have ended after the first in all order.
      const isDying = !isDone && header !== known && header !== null && isDead(header);
      const news =
        isDying || signal.aborted ? [] : openings.list(isDone).filter((unended) => !told.has(keyOf(unended)));
      for (const unended of news) told.add(keyOf(unended));
      // With what came last, so that they stand in the same columns.
      if (last.length + news.length > 0) yield [...last, ...news.map(lineOf)];
      if (isDying) continue;
      if (!follow || isDone) return;
      await wait(pollMs, undefined, { signal }).catch(() => {});
    }
  } finally {
    segment?.[Symbol.dispose]();
  }
}

/** What is open is told once, and once more where it is lost. */
function keyOf({ state, opening, at }: Unended): string {
  return `${state} ${opening} ${at}`;
}

/** Whether nobody is there who could write the first line. */
function hasNoKeeper(state: string, id: SessionId): boolean {
  const record = readRecord(state, id);
  return record === null || isDamaged(record) || record.phase === "ended" || lookAt(record.keeper) === "dead";
}

function* batchesOf(segment: Segment): Generator<readonly AuditLine[]> {
  let batch: AuditLine[] = [];
  for (const line of linesOf(segment)) {
    batch.push(line);
    if (batch.length < batchLines) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

function* linesOf(segment: Segment): Generator<AuditLine> {
  for (const text of segment.read()) {
    const line = parseAuditLine(text);
    if (line !== null) yield line;
  }
}
