import { readFileSync } from "node:fs";
import type { Via } from "./gateway-load.ts";
import { Parties } from "./gateway-parties.ts";
import { peerLines } from "./gateway-peers.ts";
import { doorLines } from "./gateway-start.ts";
import { inTurn, mebibytesPerSecond } from "./gateway-turns.ts";
import { verdictLine } from "./gateway-verdict.ts";
import { atLeast, atMost, type Bars, type Line } from "./measure.ts";

const rounds = Math.min(Number(process.env["BENCH_ROUNDS"] ?? 7), 7);
const bytes = 128 * 1024 * 1024;
const tunnels = 2_000;

/** What it costs to have the gateway between a box and the world. */
export async function gatewayLines(): Promise<readonly Line[]> {
  const judged = verdictLine();
  const doors = await doorLines();
  await using parties = await Parties.open();
  const relay = await parties.relay();
  const gateway = await parties.gateway();
  const transfers = await transferLines(parties, { relay, spliced: gateway.spliced, opened: gateway.opened });
  const added = await latencyLine(parties, relay, gateway.opened);
  const peers = await peerLines(parties, gateway);
  // Measured last, because the tunnels stay open at the server.
  return [...transfers, judged, added, ...doors, await tunnelLine(parties), ...peers];
}

async function transferLines(
  parties: Parties,
  sides: Readonly<Record<"relay" | "spliced" | "opened", Via>>,
): Promise<readonly Line[]> {
  const transfer = (kind: "download" | "upload") =>
    inTurn(sides, rounds, async (via) => mebibytesPerSecond(bytes, await parties.ask({ kind, via, bytes })));
  const [down, up] = [await transfer("download"), await transfer("upload")];
  const compare = (what: string, rates: typeof down, side: "spliced" | "opened", bars: Bars) =>
    atLeast(
      `gateway: ${what} (${rates[side].toFixed(0)} MiB/s), beside a bare relay (${rates.relay.toFixed(0)} MiB/s)`,
      rates[side] / rates.relay,
      bars,
    );
  return [
    compare("a large download, TLS untouched", down, "spliced", { guard: 0.75, goal: 0.85 }),
    compare("a large upload, TLS untouched", up, "spliced", { guard: 0.75, goal: 0.85 }),
    compare("a large download, TLS opened", down, "opened", { guard: 0.4, goal: 0.7 }),
    compare("a large upload, TLS opened", up, "opened", { guard: 0.4, goal: 0.7 }),
  ];
}

async function latencyLine(parties: Parties, relay: Via, opened: Via): Promise<Line> {
  const [bare, looked] = await parties.ask({ kind: "latency", ways: [relay, opened], blocks: rounds, each: 200 });
  const [less, more] = [bare as number, looked as number];
  return atMost(
    `gateway: opened TLS adds to a request on a kept connection (${less.toFixed(2)} ms through a bare relay)`,
    more - less,
    { guard: 1 },
    "ms",
  );
}

/** Memory of a gateway that has nothing but tunnels. Each takes two descriptors there; Node has raised its limit. */
async function tunnelLine(parties: Parties): Promise<Line> {
  const { pid, spliced } = await parties.gateway();
  await parties.ask({ kind: "tunnels", via: spliced, count: tunnels });
  const kibibytes = Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1]);
  return atMost(`gateway: memory with ${tunnels} open tunnels`, kibibytes / 1024, { guard: 300 }, "MiB");
}
