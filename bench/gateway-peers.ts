import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { Via } from "./gateway-load.ts";
import type { Parties } from "./gateway-parties.ts";
import { inTurn, mebibytesPerSecond } from "./gateway-turns.ts";
import { atLeast, type Line } from "./measure.ts";
import { installSrt } from "./srt.ts";

const rounds = Math.min(Number(process.env["BENCH_ROUNDS"] ?? 3), 3);
const bytes = 32 * 1024 * 1024;
const connections = 8;
const forMs = 600;

/** The same load through the gateway, through mitmproxy, and through srt's proxy. */
export async function peerLines(parties: Parties, gateway: { readonly spliced: Via; readonly opened: Via }) {
  const prefix = installSrt();
  const opening: Readonly<Record<string, Via>> = {
    podbot: gateway.opened,
    mitmproxy: await startMitmproxy(parties),
    srt: await parties.srt(prefix, "judge"),
    "srt without a filter": await parties.srt(prefix, "open"),
  };
  const asked = await inTurn(opening, rounds, async (via) => {
    const [perSecond] = await parties.ask({ kind: "requests", via, connections, forMs });
    return perSecond as number;
  });
  const load = async (via: Via) => mebibytesPerSecond(bytes, await parties.ask({ kind: "download", via, bytes }));
  const loaded = await inTurn(opening, rounds, load);
  const joined = await inTurn({ podbot: gateway.spliced, srt: await parties.srt(prefix, "join") }, rounds, load);
  const peers = ["mitmproxy", "srt"];
  const unjudged = compare("requests each second, TLS opened", "/s", asked, "srt without a filter");
  return [
    ...peers.map((name) => compare("requests each second, TLS opened", "/s", asked, name)),
    // srt without a filter neither judges requests nor logs them, so it has no guard.
    { ...unjudged, bars: "for information", pass: true },
    ...peers.map((name) => compare("a large download, TLS opened", " MiB/s", loaded, name)),
    compare("a large download, TLS untouched", " MiB/s", joined, "srt"),
  ];
}

function compare(what: string, unit: string, rates: Readonly<Record<string, number>>, name: string): Line {
  const [ours, theirs] = [rates["podbot"] as number, rates[name] as number];
  const figures = `gateway: ${what} (${ours.toFixed(0)}${unit}), beside ${name} (${theirs.toFixed(0)}${unit}): times as fast`;
  return atLeast(figures, ours / theirs, { guard: 1 });
}

/**
 * mitmproxy with its default options, except that it trusts our server and streams large bodies. By default it buffers
 * each body, and takes four times as long for one that is twice as large.
 */
async function startMitmproxy(parties: Parties): Promise<Via> {
  const port = await freePort();
  const settings = join(parties.directory, "mitmproxy");
  const words = ["--listen-host", "127.0.0.1", "--listen-port", `${port}`, "--set", `confdir=${settings}`];
  const trust = ["--set", `ssl_verify_upstream_trusted_ca=${parties.trustFile}`];
  const streams = ["--set", "stream_large_bodies=1m"];
  // mitmdump would not notice the death of its parent.
  const child = spawn("setpriv", ["--pdeathsig", "KILL", "mitmdump", ...words, ...trust, ...streams], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  parties.adopt(child);
  child.on("error", () => {});
  for (let tries = 0; !(await answers(port)); tries++) {
    if (child.exitCode !== null || tries > 300) throw new Error("mitmproxy does not start");
    await wait(100);
  }
  const ca = readFileSync(join(settings, "mitmproxy-ca-cert.pem"), "utf8");
  return { port, isProxy: true, host: "localhost", hostPort: parties.server.port, ca };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port });
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}
