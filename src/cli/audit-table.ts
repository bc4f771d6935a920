import type { AuditEntry, AuditHeader, AuditLine, Unended } from "../keeper/audit-line.ts";
import type { Io } from "./io.ts";
import { type Colour, painter } from "./paint.ts";
import { visibleLine } from "./visible.ts";

const heads = ["TIME", "VERDICT", "METHOD", "WHERE", "STATUS", "SENT", "RECEIVED", "TOOK", "WHY"] as const;
/** Longer cells push the others aside: one long path must not spoil all lines. */
const widest = 60;
const verdictAt = 1;
/** Sizes and times end where the others end. */
const toTheRight: readonly number[] = [5, 6, 7];

const looks: Readonly<Record<Shown["verdict"], Colour>> = {
  allowed: "green",
  open: "green",
  refused: "yellow",
  failed: "red",
  lost: "red",
};

/** What a row shows. */
interface Shown extends Omit<AuditEntry, "verdict" | "durationMs"> {
  readonly verdict: AuditEntry["verdict"] | Unended["state"];
  /** Null where there is no end. */
  readonly durationMs: number | null;
}

/** Null for a line that has no row. */
function shownOf(line: AuditLine): Shown | null {
  if (line.kind === "entry") return line.entry;
  if (line.kind !== "unended") return null;
  const { state, ...opening } = line.unended;
  const reason = state === "lost" ? { reason: "its keeper was killed" } : {};
  return { ...opening, verdict: state, durationMs: null, ...reason };
}

/** Prints entries in columns, as wide as what came so far needs. */
export function auditTable(io: Io, options: { readonly all: boolean }): (lines: readonly AuditLine[]) => void {
  const paint = painter(io.stdout, io.env);
  const widths = heads.map(({ length }) => length);
  let isHeaded = false;
  let day = "";

  const row = (cells: readonly string[], colour: Colour | null): string =>
    cells
      .map((cell, at) => {
        const width = widths[at] as number;
        const padded = toTheRight.includes(at) ? cell.padStart(width) : cell.padEnd(width);
        if (at === cells.length - 1) return cell;
        return at === verdictAt && colour !== null ? paint(colour, padded) : padded;
      })
      .join("  ")
      .trimEnd();

  const show = (line: AuditLine): readonly string[] => {
    if (line.kind === "header") return [paint("dim", headerWords(line.header))];
    if (line.kind === "lost") return [paint("red", `${line.count} more could not be written down here.`)];
    if (line.kind === "full") return [paint("red", "The audit is full: from here on nothing was let through.")];
    if (line.kind === "unlisted") return options.all ? [paint("red", unlistedWords(line.count))] : [];
    const shown = shownOf(line);
    if (shown === null || !isShown(shown, options)) return [];
    const today = dayOf(shown);
    const turn = day === today ? [] : [paint("dim", today)];
    day = today;
    const names = isHeaded ? [] : [paint("bold", row(heads, null))];
    isHeaded = true;
    return [...names, ...turn, row(cellsOf(shown), looks[shown.verdict])];
  };

  return (lines) => {
    for (const line of lines) {
      const shown = shownOf(line);
      if (shown === null || !isShown(shown, options)) continue;
      for (const [at, { length }] of cellsOf(shown).entries()) {
        if (length <= widest) widths[at] = Math.max(widths[at] as number, length);
      }
    }
    for (const text of lines.flatMap(show)) io.stdout.write(`${text}\n`);
  };
}

function unlistedWords(count: number): string {
  return count === 1 ? "Names that were looked up from here on are not listed." : `${count} names are not listed.`;
}

/** A name that is looked up leads nowhere yet: what follows it is what counts. */
function isShown({ kind }: Shown, { all }: { readonly all: boolean }): boolean {
  return all || kind !== "dns";
}

function headerWords({ id, agent, cwd, mode, startedAt }: AuditHeader): string {
  return visibleLine(`${id}  ${agent} in ${cwd}, network ${mode}, first asked ${localTime(startedAt)}`);
}

/** None of it may play with the reader's terminal: most of it comes from inside. */
function cellsOf(entry: Shown): readonly string[] {
  const { verdict, kind, method, status, sent, received, durationMs } = entry;
  const cells = [
    localTime(entry.at).slice(11),
    verdict === "failed" || verdict === "lost" ? verdict.toUpperCase() : verdict,
    method ?? kind,
    whereOf(entry),
    status === undefined ? "-" : String(status),
    sizeWords(sent),
    sizeWords(received),
    durationMs === null
      ? "-"
      : durationMs < 1_000
        ? `${Math.round(durationMs)} ms`
        : `${(durationMs / 1_000).toFixed(1)} s`,
    whyWords(entry),
  ];
  return cells.map(visibleLine);
}

/** Ports that go without saying are not said. */
function whereOf({ kind, scheme, host, port, path }: Shown): string {
  const usual = kind === "dns" ? port : scheme === "http" ? 80 : kind === "tcp" ? null : 443;
  const shown = host.includes(":") ? `[${host}]` : host;
  return `${shown}${port === usual ? "" : `:${port}`}${path ?? ""}`;
}

function whyWords({ rule, reason, masked, stripped }: Shown): string {
  return [
    ...(reason === undefined ? [] : [reason]),
    ...(rule === null ? [] : [rule]),
    ...(masked === 0 ? [] : [`masked ${masked}`]),
    ...(stripped === 0 ? [] : [`stripped ${stripped}`]),
  ].join(", ");
}

const units = ["B", "kB", "MB", "GB", "TB"] as const;

function sizeWords(bytes: number): string {
  let [size, unit] = [bytes, 0];
  for (; size >= 1_000 && unit < units.length - 1; unit += 1) size /= 1_000;
  return `${unit === 0 ? size : size.toFixed(1)} ${units[unit]}`;
}

function dayOf({ at }: Shown): string {
  return localTime(at).slice(0, 10);
}

/** By the reader's own clock: `2026-01-31 23:59:59`. */
function localTime(at: string): string {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return "????-??-?? ??:??:??";
  const two = (number: number) => String(number).padStart(2, "0");
  const date = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
  return `${date} ${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
}
