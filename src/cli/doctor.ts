import { engineFindings } from "../keeper/engine-finding.ts";
import { diagnose, isAble } from "../machine/diagnosis.ts";
import type { Parsed } from "./command.ts";
import { printFindings } from "./findings.ts";
import type { Io } from "./io.ts";
import { visibleJson } from "./visible.ts";

/** `podbot doctor`: exit status 0 where sandboxes can be started, 125 where not. */
export async function run(parsed: Parsed, io: Io): Promise<number> {
  const findings = [...diagnose(io.env["PATH"] ?? ""), ...(await engineFindings(io.env))];
  const able = isAble(findings);
  if (parsed.switches.has("json")) io.stdout.write(`${visibleJson({ able, findings }, 2)}\n`);
  else {
    printFindings(findings, io);
    io.stdout.write(able ? "\nSandboxes can be started here.\n" : "\nNo sandbox can be started here yet.\n");
  }
  return able ? 0 : 125;
}
