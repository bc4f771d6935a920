import { agentLines } from "./agents.ts";
import { bridgeLines } from "./bridge.ts";
import { engineLines } from "./engine.ts";
import { gatewayLines } from "./gateway.ts";
import type { Line } from "./measure.ts";
import { sessionLines } from "./sessions.ts";
import { startLines } from "./start.ts";

const parts: Readonly<Record<string, () => Promise<readonly Line[]>>> = {
  start: startLines,
  sessions: sessionLines,
  gateway: gatewayLines,
  bridge: bridgeLines,
  engine: engineLines,
  agents: agentLines,
};

/** Prints every figure with its guard and goal. Returns 1 if a guard is missed. `named` selects parts. */
export async function runBench(named: readonly string[] = []): Promise<number> {
  const unknown = named.find((name) => !Object.hasOwn(parts, name));
  if (unknown !== undefined) throw new Error(`there is no ${unknown}, only ${Object.keys(parts).join(", ")}`);
  const lines: Line[] = [];
  for (const [name, part] of Object.entries(parts)) {
    if (named.length === 0 || named.includes(name)) lines.push(...(await part()));
  }
  const width = Math.max(...lines.map(({ what }) => what.length));
  for (const { what, figure, bars, pass } of lines) {
    process.stdout.write(`${pass ? "pass" : "FAIL"}  ${what.padEnd(width)}  ${figure.padStart(9)}  (${bars})\n`);
  }
  return lines.every(({ pass }) => pass) ? 0 : 1;
}
