import { listSessions, warningsOf } from "../keeper/sessions.ts";
import type { SessionState, SessionView } from "../registry/reconcile.ts";
import type { Parsed } from "./command.ts";
import type { Io } from "./io.ts";
import { type Colour, painter } from "./paint.ts";
import { visibleJson, visibleLine } from "./visible.ts";

const looks: Readonly<Record<SessionState, Colour>> = {
  starting: "yellow",
  prepared: "dim",
  running: "green",
  ending: "yellow",
  suspended: "yellow",
  unreachable: "red",
  ended: "dim",
  died: "red",
  stray: "red",
};

/** `podbot ps`: what sessions there are, whatever has happened to their keepers. */
export async function run(parsed: Parsed, io: Io): Promise<number> {
  const sessions = (await listSessions(io.env)).map((view) => ({ ...view, warnings: warningsOf(io.env, view.id) }));
  if (parsed.switches.has("json")) io.stdout.write(`${visibleJson(sessions.map(toJson), 2)}\n`);
  else if (parsed.switches.has("quiet")) for (const { id } of sessions) io.stdout.write(`${id}\n`);
  else if (sessions.length === 0) io.stdout.write("No sessions. `podbot run` starts one.\n");
  else printTable(sessions, io);
  return 0;
}

type Warned = SessionView & { readonly warnings: readonly string[] };

function toJson({ id, state, why, record, warnings }: Warned): unknown {
  const { agent, command, cwd, createdAt, endedAt, exit, detached, wall, keeper } = record ?? {};
  const pid = keeper?.pid;
  return { id, state, why, agent, command, cwd, createdAt, endedAt, exit, detached, wall, keeper: pid, warnings };
}

function printTable(sessions: readonly Warned[], io: Io): void {
  const paint = painter(io.stdout, io.env);
  const rows = sessions.map(
    (view) => [view.id, stateWords(view), ageOf(view, io.now()), ...recordWords(view)] as const,
  );
  const heads = ["ID", "STATE", "AGE", "AGENT", "DIRECTORY", "COMMAND"] as const;
  const widths = heads.map((head, at) => Math.max(head.length, ...rows.map((row) => (row[at] as string).length)));
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, at) => (at === cells.length - 1 ? cell : cell.padEnd(widths[at] as number)))
      .join("  ")
      .trimEnd();
  io.stdout.write(`${paint("bold", line(heads))}\n`);
  for (const [at, row] of rows.entries()) {
    const { id, state, why, warnings } = sessions[at] as Warned;
    io.stdout.write(`${line(row).replace(row[1], paint(looks[state], row[1]))}\n`);
    if (why !== null) io.stdout.write(`  ${paint("dim", visibleLine(why))}\n`);
    if (warnings.length > 0) io.stdout.write(`  ${paint("yellow", warned(id, warnings.length))}\n`);
  }
}

function warned(id: string, count: number): string {
  return `${count} warning${count === 1 ? "" : "s"}: \`podbot logs ${id}\` shows ${count === 1 ? "it" : "them"}`;
}

function stateWords({ state, record }: SessionView): string {
  return state === "ended" && record?.exit ? `ended (${record.exit.code})` : state;
}

/** What a record says comes from a command line and from paths: none of it may play with the reader's terminal. */
function recordWords({ record }: SessionView): readonly [string, string, string] {
  if (record === null) return ["", "", ""];
  return [visibleLine(record.agent), visibleLine(record.cwd), visibleLine(record.command.join(" "))];
}

const units = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
] as const;

/** A clock that was set back makes no age, rather than a wrong one. */
function ageOf({ record }: SessionView, now: number): string {
  const age = record === null ? -1 : now - Date.parse(record.createdAt);
  if (age < 0) return "?";
  const [unit, size] = units.find(([, ms]) => age >= ms) ?? ["s", 1_000];
  return `${Math.floor(age / size)}${unit}`;
}
