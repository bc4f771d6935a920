import type { Denial } from "./answer.ts";
import type { AuditAhead, AuditEntry } from "./audit.ts";

type Known = Partial<Omit<AuditEntry, "at" | "durationMs" | "opening">>;
type Outcome = Known & Pick<AuditEntry, "verdict">;
type About = Pick<AuditEntry, "kind" | "host" | "port"> & Known;
type Measure = () => Pick<AuditEntry, "sent" | "received">;

/** One line of the audit, which is written once, whatever happens to what it is about. */
export interface Line {
  /** What becomes known on the way. */
  note(known: Known): void;
  /**
   * Writes down that it is about to be let out, as it is known by now. False where that cannot be written: then nothing
   * of it may leave.
   */
  open(): boolean;
  /** Where to ask, when it is written, for what has passed by then. */
  measure(traffic: Measure): void;
  write(outcome: Outcome): void;
  /** It turned out to be about nothing, or others are written in its place. */
  drop(): void;
}

export interface Ledger {
  begin(about: About): Line;
  /** Writes what is still open, as far as it has come. */
  close(): void;
}

export interface LedgerOptions {
  readonly audit: (entry: AuditEntry) => void;
  /** Writes what must be read even if the end never is; false where it cannot. */
  readonly ahead: (line: AuditAhead) => boolean;
  /** Takes secrets out of a text that came from inside. */
  readonly redact: (text: string) => string;
  /** When it is first told how far something has come; from then on, after twice the time. */
  readonly renewMs: number;
}

/** Whoever asks chooses the words. */
const longest = 1024;
const rarestRenewalMs = 600_000;
const noTraffic: Measure = () => ({ sent: 0, received: 0 });

/** One line while it is not written. */
interface Pending {
  known: About;
  measured: Measure;
  /** The number of its opening; null where nothing was let out. */
  opening: number | null;
  /** When it is next told how far it has come, and after which time. */
  renewAt: number;
  gapMs: number;
  told: number;
}

export function openLedger({ audit, ahead, redact, renewMs }: LedgerOptions): Ledger {
  const pending = new Map<Line, Pending>();
  let openings = 0;
  let timer: NodeJS.Timeout | undefined;
  const now = () => new Date().toISOString();

  /** Whatever came from inside may hold a secret: all texts are searched, and only then cut. */
  const shown = <T extends Known>(known: T): T => {
    const texts = Object.entries(known).filter(([name, value]) => typeof value === "string" && !fixed.has(name));
    return { ...known, ...Object.fromEntries(texts.map(([name, value]) => [name, cut(redact(value as string))])) };
  };
  const renew = () => {
    const time = performance.now();
    for (const each of pending.values()) {
      if (each.opening === null || time < each.renewAt) continue;
      const { sent, received } = each.measured();
      if (sent + received !== each.told) ahead({ passing: each.opening, at: now(), sent, received });
      each.told = sent + received;
      each.gapMs = Math.min(each.gapMs * 2, rarestRenewalMs);
      each.renewAt = time + each.gapMs;
    }
  };
  const drop = (each: Pending) => {
    if (each.opening !== null) ahead({ dropped: each.opening, at: now() });
    each.opening = null;
  };
  const open = (each: Pending): boolean => {
    drop(each);
    const opening = ++openings;
    const { verdict: _, status: __, reason: ___, sent: ____, received: _____, ...said } = each.known;
    if (!ahead({ opening, at: now(), rule: null, masked: 0, stripped: 0, ...shown(said) })) return false;
    Object.assign(each, { opening, gapMs: renewMs, renewAt: performance.now() + renewMs });
    timer ??= setInterval(renew, renewMs).unref();
    return true;
  };

  return {
    begin(about) {
      const began = performance.now();
      const each: Pending = { known: about, measured: noTraffic, opening: null, renewAt: 0, gapMs: 0, told: 0 };
      const line: Line = {
        note(more) {
          each.known = { ...each.known, ...more };
        },
        open: () => open(each),
        measure(traffic) {
          each.measured = traffic;
        },
        write(outcome) {
          if (!pending.delete(line)) return;
          audit({
            at: now(),
            rule: null,
            masked: 0,
            stripped: 0,
            ...each.measured(),
            ...shown({ ...each.known, ...outcome }),
            durationMs: Math.round((performance.now() - began) * 10) / 10,
            ...(each.opening === null ? {} : { opening: each.opening }),
          });
        },
        drop() {
          if (pending.delete(line)) drop(each);
        },
      };
      pending.set(line, each);
      return line;
    },
    close() {
      clearInterval(timer);
      for (const [line, { known }] of pending) {
        const { verdict = "failed", reason = "the gateway was closed" } = known;
        line.write(verdict === "failed" ? { verdict, reason } : { verdict });
      }
    },
  };
}

/** Words of ours, of which there are few. */
const fixed: ReadonlySet<string> = new Set(["kind", "verdict", "scheme"]);

function cut(text: string): string {
  return text.length > longest ? `${text.slice(0, longest)}…` : text;
}

/** How a refusal is put down. */
export function refused({ code, rule }: Denial): Outcome {
  return { verdict: "refused", reason: code, rule: rule?.origin ?? null };
}
