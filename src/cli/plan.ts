import type { PlannedSandbox } from "../keeper/planned.ts";
import type { Parsed } from "./command.ts";
import { describeNetwork, explain } from "./explain.ts";
import type { Io } from "./io.ts";
import { painter } from "./paint.ts";
import { visible, visibleJson, visibleLine } from "./visible.ts";

/** Says what the owner should know of a plan before it is carried out. True where it was only to be shown. */
export function showPlan(planned: PlannedSandbox, parsed: Parsed, io: Io): boolean {
  if (parsed.switches.has("debug")) io.stderr.write(visible(explain(planned)));
  if (!parsed.switches.has("quiet")) warn(planned.warnings, io);
  if (!parsed.switches.has("dry-run")) return false;
  io.stdout.write(parsed.switches.has("json") ? `${visibleJson(planned.plan, 2)}\n` : withRules(planned));
  return true;
}

/** The script builds a box without doors: what a gateway would let through, it can only tell. */
function withRules(planned: PlannedSandbox): string {
  const script = planned.script();
  if (planned.plan.network.policy === null) return script;
  const lines = describeNetwork(planned.plan).map((text) => `# network: ${visibleLine(text)}\n`);
  return `${script.replace(/\n?$/, "\n")}${lines.join("")}`;
}

export function warn(warnings: readonly string[], io: Io): void {
  if (warnings.length === 0) return;
  const paint = painter(io.stderr, io.env);
  for (const warning of warnings) io.stderr.write(`${paint("yellow", "podbot: warning:")} ${visible(warning)}\n`);
}
