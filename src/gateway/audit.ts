/** One thing that was asked for at a door, and what became of it. Holds no query, no header and no body. */
export interface AuditEntry {
  readonly at: string;
  readonly kind: "dns" | "tcp" | "tls" | "http";
  readonly verdict: "allowed" | "refused" | "failed";
  readonly host: string;
  readonly port: number;
  readonly scheme?: "http" | "https";
  readonly method?: string;
  readonly path?: string;
  readonly status?: number;
  /** Who has said what decided; null where no rule did. */
  readonly rule: string | null;
  /** Why it was refused, or how it failed. */
  readonly reason?: string;
  readonly sent: number;
  readonly received: number;
  readonly durationMs: number;
  /** How many surrogates were replaced by what they stand for, and how many foreign credentials were taken out. */
  readonly masked: number;
  readonly stripped: number;
  /** The number of the line that was written before anything of it was let out. */
  readonly opening?: number;
}

/** What is about to be let out, as it is written before that. */
export interface AuditOpening
  extends Pick<
    AuditEntry,
    "at" | "kind" | "host" | "port" | "scheme" | "method" | "path" | "rule" | "masked" | "stripped"
  > {
  /** Counts up, within one process. */
  readonly opening: number;
}

/** How far something has come that was let out, and goes on. */
export interface AuditProgress extends Pick<AuditEntry, "at" | "sent" | "received"> {
  readonly passing: number;
}

/** What was opened is now told of in other lines. */
export interface AuditDrop extends Pick<AuditEntry, "at"> {
  readonly dropped: number;
}

export type AuditAhead = AuditOpening | AuditProgress | AuditDrop;
