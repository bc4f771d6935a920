import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import type { PlannedSandbox } from "../../keeper/planned.ts";
import { planSandbox } from "../../keeper/sandbox.ts";
import { thisHost } from "../../machine/host.ts";
import type { Parsed } from "../command.ts";
import type { Io } from "../io.ts";
import { painter } from "../paint.ts";
import { visible } from "../visible.ts";
import { agentScript, attempts } from "./attempts.ts";
import { Stage } from "./stage.ts";

interface Row {
  readonly title: string;
  readonly outcome: string;
  readonly asExpected: boolean;
  readonly rule: string;
}

/** `podbot demo`: a real sandbox, a scripted agent, and the truth about what happened. */
export async function run(parsed: Parsed, io: Io): Promise<number> {
  const stage = new Stage(io.env["PATH"] ?? "");
  const server = createServer((socket) => socket.end("reached")).listen(0, "127.0.0.1");
  try {
    await once(server, "listening");
    const began = performance.now();
    const planned = await planDemo(stage, (server.address() as AddressInfo).port, io);
    const results = await runAgent(planned, join(stage.directory, "log"), io);
    const rows = attempts.map(({ title, expected, rule }, at): Row => {
      const outcome = results.get(at) ?? "unknown";
      return { title, outcome, asExpected: outcome === expected, rule: rule(planned.plan, stage) };
    });
    const diff = stage.git("diff", "--stat", "-p", "base");
    if (parsed.switches.has("json")) io.stdout.write(`${JSON.stringify({ attempts: rows, diff }, null, 2)}\n`);
    else show(rows, diff, stage, Math.round(performance.now() - began), io);
    return rows.every(({ asExpected }) => asExpected) ? 0 : 125;
  } finally {
    server.close();
    stage[Symbol.dispose]();
  }
}

function planDemo(stage: Stage, port: number, io: Io): Promise<PlannedSandbox> {
  return planSandbox({
    command: ["sh", "-c", agentScript()],
    cwd: stage.repository,
    env: { PATH: io.env["PATH"], LANG: io.env["LANG"], HOME: stage.home, DEMO_TOKEN: "a secret" },
    config: { environment: { set: { DEMO_NODE: thisHost().node, DEMO_PORT: `${port}` } } },
  });
}

async function runAgent(planned: PlannedSandbox, log: string, io: Io): Promise<ReadonlyMap<number, string>> {
  const input = openSync("/dev/null", "r");
  const output = openSync(log, "w");
  try {
    await planned.run([input, output, io.descriptors[2]], { onSignal: io.onSignal });
  } finally {
    closeSync(input);
    closeSync(output);
  }
  const lines = readFileSync(log, "utf8").matchAll(/^(\d+) (\d+)$/gm);
  return new Map([...lines].map(([, at, status]) => [Number(at), status === "0" ? "done" : "stopped"]));
}

function show(rows: readonly Row[], diff: string, stage: Stage, tookMs: number, io: Io): void {
  const paint = painter(io.stdout, io.env);
  const mark = ({ outcome, asExpected }: Row) =>
    !asExpected ? paint("red", `${outcome}?!`) : paint(outcome === "done" ? "green" : "yellow", outcome.padEnd(7));
  io.stdout.write("A scripted agent worked in a throwaway repository, behind a wall of bubblewrap.\n\n");
  for (const row of rows) {
    const rule = row.rule.replaceAll(stage.directory, "…");
    io.stdout.write(`  ${mark(row)}  ${row.title.padEnd(34)}  ${paint("dim", visible(rule))}\n`);
  }
  io.stdout.write(`\nThe diff that it left:\n\n${visible(diff)}\n`);
  io.stdout.write(
    rows.every(({ asExpected }) => asExpected)
      ? `The wall held (${tookMs} ms). Now your own project: podbot sandbox -- COMMAND\n`
      : paint("red", "Something did not go as it should: see the rows marked ?!\n"),
  );
}
