import type { Denial } from "./answer.ts";
import type { AuditEntry } from "./audit.ts";

type Known = Partial<Omit<AuditEntry, "at" | "durationMs">>;
type Outcome = Known & Pick<AuditEntry, "verdict">;
type About = Pick<AuditEntry, "kind" | "host" | "port"> & Known;

/** One line of the audit, which is written once, whatever happens to what it is about. */
export interface Line {
  /** What becomes known on the way. */
  note(known: Known): void;
  /** Where to ask, when it is written, for what has passed by then. */
  measure(traffic: () => Pick<AuditEntry, "sent" | "received">): void;
  write(outcome: Outcome): void;
  /** It turned out to be about nothing, or others are written in its place. */
  drop(): void;
}

export interface Ledger {
  begin(about: About): Line;
  /** Writes what is still open, as far as it has come. */
  close(): void;
}

/** Whoever asks chooses the words. */
const longest = 1024;

export function openLedger(audit: (entry: AuditEntry) => void): Ledger {
  const open = new Map<Line, () => void>();
  return {
    begin(about) {
      const began = performance.now();
      let known: About = about;
      let measured = (): Known => ({});
      const line: Line = {
        note(more) {
          known = { ...known, ...more };
        },
        measure(traffic) {
          measured = traffic;
        },
        write(outcome) {
          if (!open.delete(line)) return;
          const { method, path, reason, ...rest } = { ...known, ...measured(), ...outcome };
          audit({
            at: new Date().toISOString(),
            rule: null,
            sent: 0,
            received: 0,
            masked: 0,
            stripped: 0,
            ...rest,
            ...(method === undefined ? {} : { method: cut(method) }),
            ...(path === undefined ? {} : { path: cut(path) }),
            ...(reason === undefined ? {} : { reason: cut(reason) }),
            durationMs: Math.round((performance.now() - began) * 10) / 10,
          });
        },
        drop: () => void open.delete(line),
      };
      open.set(line, () => {
        const { verdict = "failed", reason = "the gateway was closed" } = known;
        line.write(verdict === "failed" ? { verdict, reason } : { verdict });
      });
      return line;
    },
    close() {
      for (const conclude of open.values()) conclude();
    },
  };
}

function cut(text: string): string {
  return text.length > longest ? `${text.slice(0, longest)}…` : text;
}

/** How a refusal is put down. */
export function refused({ code, rule }: Denial): Outcome {
  return { verdict: "refused", reason: code, rule: rule?.origin ?? null };
}
