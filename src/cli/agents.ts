import { type InstalledAgent, listAgents } from "../keeper/installed.ts";
import type { Parsed } from "./command.ts";
import type { Io } from "./io.ts";
import { painter } from "./paint.ts";
import { visibleJson, visibleLine } from "./visible.ts";

/** `podbot agents`: which agents Podbot knows, and how each is on this machine. */
export async function run(parsed: Parsed, io: Io): Promise<number> {
  const agents = await listAgents({ env: io.env, cwd: io.cwd });
  if (parsed.switches.has("json")) io.stdout.write(`${visibleJson(agents, 2)}\n`);
  else printTable(agents, io);
  return 0;
}

const heads = ["AGENT", "STATE", "VERSION", "IMAGE", "HOSTED", "TITLE", "PATH"] as const;

function printTable(agents: readonly InstalledAgent[], io: Io): void {
  const paint = painter(io.stdout, io.env);
  const rows = agents.map(rowOf);
  const widths = heads.map((head, at) => Math.max(head.length, ...rows.map((row) => (row[at] as string).length)));
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, at) => cell.padEnd(widths[at] as number))
      .join("  ")
      .trimEnd();
  io.stdout.write(`${paint("bold", line(heads))}\n`);
  for (const [at, row] of rows.entries()) {
    const { usable, path, problem, remedy, hosted } = agents[at] as InstalledAgent;
    const colour = usable ? "green" : path === null ? "dim" : "red";
    io.stdout.write(`${line(row).replace(row[1], paint(colour, row[1]))}\n`);
    const mendings = [{ problem, remedy }, ...(usable ? hosted : [])].filter(({ remedy: way }) => way !== null);
    for (const one of mendings) {
      io.stdout.write(`  ${paint("dim", visibleLine(`${one.problem} → ${one.remedy}`))}\n`);
    }
  }
}

function rowOf(agent: InstalledAgent): readonly [string, string, ...string[]] {
  const { name, usable, version, title, path, hosted } = agent;
  const modes = hosted.flatMap((form) => (form.usable ? [form.mode] : []));
  const state = usable ? "usable" : path === null ? "missing" : "broken";
  const image = agent.package.version;
  return [name, state, version ?? "–", image, modes.join(",") || "–", title, path === null ? "" : visibleLine(path)];
}
