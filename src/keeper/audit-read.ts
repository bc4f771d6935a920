import { setTimeout as wait } from "node:timers/promises";
import type { AuditEntry } from "../gateway/audit.ts";
import { openSegment, type Segment } from "../journal/segment.ts";
import { lookAt } from "../machine/process-mark.ts";
import { isDamaged, type SessionId } from "../registry/record.ts";
import { readRecord } from "../registry/store.ts";
import { auditFile, isDead } from "./audit-files.ts";
import { type AuditHeader, type AuditLine, parseAuditLine } from "./audit-line.ts";

const pollMs = 100;
const batchLines = 1_000;

/** What a run has asked for so far. Torn and damaged lines are skipped. */
export function* readAuditEntries(state: string, id: SessionId): Generator<AuditEntry> {
  const segment = openSegment(auditFile(state, id));
  if (segment === null) return;
  try {
    for (const line of linesOf(segment)) if (line.kind === "entry") yield line.entry;
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
 * The lines of an audit, some at a time. A run is over when its audit says so, or when the process that wrote it is
 * gone; one that has asked for nothing yet, when its record says so.
 */
export async function* readAudit(
  state: string,
  id: SessionId,
  { follow, signal }: AuditReading,
): AsyncGenerator<readonly AuditLine[]> {
  let segment: Segment | null = null;
  let header: AuditHeader | null = null;
  try {
    while (!signal.aborted) {
      const known: AuditHeader | null = header;
      // Asked before the reading: what was written before the end is then read after it.
      const isOver = known === null ? hasNoKeeper(state, id) : isDead(known);
      let isEnded = false;
      segment ??= openSegment(auditFile(state, id));
      for (const batch of segment === null ? [] : batchesOf(segment)) {
        for (const line of batch) {
          // A keeper that comes back to its box begins again.
          if (line.kind === "header") [header, isEnded] = [line.header, false];
          if (line.kind === "ended") isEnded = true;
        }
        yield batch;
        if (signal.aborted) return;
      }
      if (!follow || isEnded || (isOver && header === known)) return;
      await wait(pollMs, undefined, { signal }).catch(() => {});
    }
  } finally {
    segment?.[Symbol.dispose]();
  }
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
