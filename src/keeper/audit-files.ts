import { closeSync, fstatSync, lstatSync, openSync, readSync, rmSync } from "node:fs";
import { join } from "node:path";
import { SessionError } from "../errors.ts";
import { openSegment } from "../journal/segment.ts";
import { lookAt } from "../machine/process-mark.ts";
import { findSession } from "../registry/find.ts";
import { isSessionId, type SessionId } from "../registry/record.ts";
import { namesIn, readRecords } from "../registry/store.ts";
import { type AuditHeader, parseAuditLine } from "./audit-line.ts";

/** Where the audits of all runs lie: kept out of every box, since they say what the owner's other runs do. */
export function auditDirectory(state: string): string {
  return join(state, "audit");
}

export function auditFile(state: string, id: SessionId): string {
  if (!isSessionId(id))
    throw new SessionError("SESSION_NOT_FOUND", `No session can have the id ${JSON.stringify(id)}.`);
  return join(auditDirectory(state), `${id}.jsonl`);
}

/**
 * The run that an id, or the beginning of one, means; the one that has last asked for something where none is named.
 * A session that has asked for nothing yet is found, and has no file.
 */
export function findAudit(state: string, word: string | undefined): SessionId {
  const audits = listAudits(state);
  if (word === undefined) {
    const [latest] = audits;
    if (latest !== undefined) return latest.id;
    throw new SessionError("SESSION_NOT_FOUND", "No run has asked for anything yet.", {
      hint: "A run with the network mode allowlist or learn leaves an audit when it first asks for something.",
    });
  }
  const ids = audits.map(({ id }) => ({ id }));
  const known = new Set(ids.map(({ id }) => id));
  const others = readRecords(state).filter(({ id }) => !known.has(id));
  const newest = ids.slice(0, 3).map(({ id }) => id);
  const whereToLook =
    newest.length === 0 ? "No run has asked for anything yet." : `The newest audits: ${newest.join(", ")}.`;
  return findSession([...ids, ...others.map(({ id }) => ({ id }))], word, whereToLook).id;
}

/** Removes all but the newest, so that there is room for one more; those of runs that go on are kept. */
export function sweepAudits(state: string, keep: number): void {
  for (const { id } of listAudits(state).slice(keep - 1)) {
    const path = auditFile(state, id);
    if (!goesOn(path)) rmSync(path, { force: true });
  }
}

/** Those there are, the one that was last written to first. */
function listAudits(state: string): readonly { readonly id: SessionId; readonly changed: number }[] {
  return namesIn(auditDirectory(state), "audits")
    .flatMap((name) => {
      const id = name.replace(/\.jsonl$/, "");
      const changed = isSessionId(id) && id !== name ? changedAt(auditFile(state, id)) : null;
      return changed === null ? [] : [{ id, changed }];
    })
    .sort((one, other) => other.changed - one.changed || (one.id < other.id ? -1 : 1));
}

/** Null for what is no file of its own, or is gone by now. */
function changedAt(path: string): number | null {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  return stats?.isFile() ? stats.mtimeMs : null;
}

/** Whether somebody still writes there, as far as can be told from here. */
function goesOn(path: string): boolean {
  const header = headerOf(path);
  return header !== null && !isDead(header) && !endsWithEnd(path);
}

/** Of a process elsewhere nothing can be said; its last line, if it came to write one, says it. */
export function isDead({ keeper }: AuditHeader): boolean {
  return keeper !== null && lookAt(keeper) === "dead";
}

function headerOf(path: string): AuditHeader | null {
  const segment = openSegment(path);
  if (segment === null) return null;
  try {
    const [first] = segment.read();
    const line = first === undefined ? null : parseAuditLine(first);
    return line?.kind === "header" ? line.header : null;
  } finally {
    segment[Symbol.dispose]();
  }
}

function endsWithEnd(path: string): boolean {
  const descriptor = openSync(path, "r");
  try {
    const { size } = fstatSync(descriptor);
    const bytes = Buffer.alloc(Math.min(size, 256));
    readSync(descriptor, bytes, 0, bytes.length, size - bytes.length);
    const last = bytes.toString("utf8").trimEnd().split("\n").at(-1) as string;
    return parseAuditLine(last)?.kind === "ended";
  } finally {
    closeSync(descriptor);
  }
}
