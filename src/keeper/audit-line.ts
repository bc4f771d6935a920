import type { AuditDrop, AuditEntry, AuditOpening, AuditProgress } from "../gateway/audit.ts";
import { isCount, parseObject } from "../journal/event.ts";
import type { ProcessMark } from "../machine/process-mark.ts";
import type { SessionId } from "../registry/record.ts";

export type { AuditEntry };

/** What stands at the beginning: whose audit it is. No command line, which may hold secrets. */
export interface AuditHeader {
  readonly podbot: 1;
  readonly id: SessionId;
  readonly startedAt: string;
  readonly agent: string;
  readonly cwd: string;
  readonly mode: "allowlist" | "learn";
  /** The process that writes; null where it could not be told. */
  readonly keeper: ProcessMark | null;
}

/** One line of an audit, and the very text of it. */
export type AuditLine = { readonly text: string } & (
  | { readonly kind: "header"; readonly header: AuditHeader }
  | { readonly kind: "entry"; readonly entry: AuditEntry }
  /** It was about to be let out. */
  | { readonly kind: "opening"; readonly opening: AuditOpening }
  /** How far it has come. */
  | { readonly kind: "progress"; readonly progress: AuditProgress }
  | { readonly kind: "drop"; readonly drop: AuditDrop }
  /** Not in the file: what was let out and has no end there. */
  | { readonly kind: "unended"; readonly unended: Unended }
  /** So many entries could not be written before this. */
  | { readonly kind: "lost"; readonly count: number }
  /** So many names were looked up that are not listed, by the end of the run; one: from here on they are not. */
  | { readonly kind: "unlisted"; readonly count: number }
  /** Nothing more is written down, since the file is as large as it may become; nor let through. */
  | { readonly kind: "full" }
  /** The run is over. */
  | { readonly kind: "ended"; readonly endedAt: string }
);

/** It goes on, or its keeper was killed and took its end along. */
export interface Unended extends AuditOpening, Pick<AuditEntry, "sent" | "received"> {
  readonly state: "open" | "lost";
}

type Values = Readonly<Record<string, unknown>>;

/** Null for a torn or damaged line. */
export function parseAuditLine(text: string): AuditLine | null {
  const value = parseObject(text);
  if (value === null) return null;
  if (isHeader(value)) return { text, kind: "header", header: value as unknown as AuditHeader };
  if (isEntry(value)) return { text, kind: "entry", entry: value as unknown as AuditEntry };
  if (isOpening(value)) return { text, kind: "opening", opening: value as unknown as AuditOpening };
  if (isCount(value["passing"]) && isNumber(value["sent"]) && isNumber(value["received"])) {
    return { text, kind: "progress", progress: value as unknown as AuditProgress };
  }
  if (isCount(value["dropped"])) return { text, kind: "drop", drop: value as unknown as AuditDrop };
  if (isCount(value["lost"])) return { text, kind: "lost", count: value["lost"] };
  if (isCount(value["unlisted"])) return { text, kind: "unlisted", count: value["unlisted"] };
  if (value["full"] === true) return { text, kind: "full" };
  if (typeof value["endedAt"] === "string") return { text, kind: "ended", endedAt: value["endedAt"] };
  return null;
}

const isText = (value: unknown) => typeof value === "string";
const isNumber = (value: unknown) => typeof value === "number";
const optional = (check: (value: unknown) => boolean) => (value: unknown) => value === undefined || check(value);
const oneOf =
  (...all: readonly unknown[]) =>
  (value: unknown) =>
    all.includes(value);

const entryFields: Readonly<Record<keyof AuditEntry, (value: unknown) => boolean>> = {
  at: isText,
  kind: oneOf("dns", "tcp", "tls", "http"),
  verdict: oneOf("allowed", "refused", "failed"),
  host: isText,
  port: isCount,
  scheme: optional(oneOf("http", "https")),
  method: optional(isText),
  path: optional(isText),
  status: optional(isCount),
  rule: (value) => value === null || isText(value),
  reason: optional(isText),
  sent: isNumber,
  received: isNumber,
  durationMs: isNumber,
  masked: isCount,
  stripped: isCount,
  opening: optional(isCount),
};

const openingFields: Readonly<Record<keyof AuditOpening, (value: unknown) => boolean>> = {
  at: isText,
  kind: entryFields.kind,
  host: isText,
  port: isCount,
  scheme: entryFields.scheme,
  method: entryFields.method,
  path: entryFields.path,
  rule: entryFields.rule,
  masked: isCount,
  stripped: isCount,
  opening: isCount,
};

const headerFields: Readonly<Record<keyof AuditHeader, (value: unknown) => boolean>> = {
  podbot: oneOf(1),
  id: isText,
  startedAt: isText,
  agent: isText,
  cwd: isText,
  mode: oneOf("allowlist", "learn"),
  keeper: (value) => value === null || isMark(value),
};

function isHeader(value: Values): boolean {
  return Object.entries(headerFields).every(([name, check]) => check(value[name]));
}

function isEntry(value: Values): boolean {
  return Object.entries(entryFields).every(([name, check]) => check(value[name]));
}

function isOpening(value: Values): boolean {
  return Object.entries(openingFields).every(([name, check]) => check(value[name]));
}

function isMark(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { pid, started, space, machine } = value as Values;
  return isCount(pid) && [started, space, machine].every(isText);
}
