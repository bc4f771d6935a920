import type { AuditOpening, AuditProgress } from "../gateway/audit.ts";
import type { AuditHeader, AuditLine, Unended } from "./audit-line.ts";

type Traffic = Pick<AuditProgress, "sent" | "received">;

/** Joins beginnings to ends: what is left was let out, and has no end in the file. */
export class Openings {
  readonly #open = new Map<number, { readonly opening: AuditOpening; traffic: Traffic }>();
  readonly #lost: Unended[] = [];
  #keeper = "";

  take(line: AuditLine): void {
    if (line.kind === "header") this.#takeHeader(line.header);
    else if (line.kind === "opening") this.#open.set(line.opening.opening, { opening: line.opening, traffic: nothing });
    else if (line.kind === "entry" && line.entry.opening !== undefined) this.#open.delete(line.entry.opening);
    else if (line.kind === "drop") this.#open.delete(line.drop.dropped);
    else if (line.kind === "ended") this.#lose();
    else if (line.kind === "progress") {
      const known = this.#open.get(line.progress.passing);
      if (known !== undefined) known.traffic = line.progress;
    }
  }

  /** What has no end by now; all of it is lost where its keeper is gone. */
  list(isOver: boolean): readonly Unended[] {
    if (isOver) this.#lose();
    return [...this.#lost, ...[...this.#open.values()].map((each) => unendedOf(each, "open"))];
  }

  /** Each process counts for itself. One that begins its file again is the same. */
  #takeHeader({ keeper }: AuditHeader): void {
    const written = JSON.stringify(keeper);
    if (written !== this.#keeper || keeper === null) this.#lose();
    this.#keeper = written;
  }

  #lose(): void {
    for (const each of this.#open.values()) this.#lost.push(unendedOf(each, "lost"));
    this.#open.clear();
  }
}

const nothing: Traffic = { sent: 0, received: 0 };

function unendedOf(
  { opening, traffic: { sent, received } }: { readonly opening: AuditOpening; readonly traffic: Traffic },
  state: Unended["state"],
): Unended {
  return { state, ...opening, sent, received };
}

export function lineOf(unended: Unended): AuditLine {
  return { text: JSON.stringify(unended), kind: "unended", unended };
}
