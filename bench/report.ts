import { erase, eraseDeadRuns } from "../test/suite/erase.ts";
import { endWhenOutputCloses, onInterrupt } from "../test/suite/interrupt.ts";
import { enterRun, newRun } from "../test/suite/run.ts";
import { agentLines } from "./agents.ts";
import { bridgeLines } from "./bridge.ts";
import { engineLines } from "./engine.ts";
import { gatewayLines } from "./gateway.ts";
import type { Line } from "./measure.ts";
import { patternLines } from "./patterns.ts";
import { sessionLines } from "./sessions.ts";
import { startLines } from "./start.ts";

const parts: Readonly<Record<string, () => Promise<readonly Line[]>>> = {
  start: startLines,
  patterns: patternLines,
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
  endWhenOutputCloses();
  await eraseDeadRuns();
  const run = newRun();
  enterRun(run);
  let erasing: Promise<unknown> | null = null;
  let signal: NodeJS.Signals | null = null;
  const held = onInterrupt((received) => {
    signal = received;
    erasing = erase(run);
  });
  const lines: Line[] = [];
  for (const [name, part] of Object.entries(parts)) {
    if ((named.length > 0 && !named.includes(name)) || signal !== null) continue;
    lines.push(...(await part().catch((error: unknown) => [failure(name, error)])));
  }
  await (erasing ?? erase(run));
  held[Symbol.dispose]();
  if (signal !== null) process.kill(process.pid, signal);
  const width = Math.max(...lines.map(({ what }) => what.length));
  for (const { what, figure, bars, pass } of lines) {
    process.stdout.write(`${pass ? "pass" : "FAIL"}  ${what.padEnd(width)}  ${figure.padStart(9)}  (${bars})\n`);
  }
  return lines.every(({ pass }) => pass) ? 0 : 1;
}

/** What cannot be measured is a failure, but must not hide what the other parts have measured. */
function failure(name: string, error: unknown): Line {
  return { what: name, figure: "no figure", bars: error instanceof Error ? error.message : String(error), pass: false };
}
