import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable, Writable } from "node:stream";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { bridge } from "../src/bridge/bridge.ts";
import { Inspector } from "../src/bridge/inspector.ts";
import { type BridgePolicy, defaultMaxFrameBytes } from "../src/bridge/policy.ts";
import { atLeast, atMost, type Line, median } from "./measure.ts";
import { startIdle, startPodman } from "./podman.ts";

const podbot = fileURLToPath(new URL("../dist/podbot.cjs", import.meta.url));
const mebibyte = 1 << 20;
const policy: BridgePolicy = {
  protocol: "acp",
  delegation: "disabled",
  maxFrameBytes: defaultMaxFrameBytes,
  paths: null,
};

/** A message of about so many bytes, as agents write them: a piece of a program, with quotes and line ends. */
function frame(bytes: number): Buffer {
  const text = '  const sum = add("one", two); // and so on, as code goes\n'.repeat(Math.ceil(bytes / 50));
  const update = { sessionUpdate: "agent_message_chunk", content: { type: "text", text: "" } };
  const params = { sessionId: "sess_0123456789abcdef", update };
  const spelled = (part: string) => {
    update.content.text = part;
    return Buffer.from(`${JSON.stringify({ jsonrpc: "2.0", method: "session/update", params })}\n`);
  };
  return spelled(text.slice(0, Math.floor((bytes - spelled("").length) * 0.93)));
}

/** At least so many bytes of whole frames. */
function block(one: Buffer, bytes: number): Buffer {
  return Buffer.concat(Array.from({ length: Math.ceil(bytes / one.length) }, () => one));
}

export async function bridgeLines(): Promise<readonly Line[]> {
  return [
    atLeast("bridge: inspection of 300-byte messages", inspectionSpeed(frame(300)), { guard: 100 }, "MiB/s"),
    atLeast("bridge: inspection of 100 kB messages", inspectionSpeed(frame(100_000)), { guard: 400 }, "MiB/s"),
    atMost("bridge: added to a message (p50)", await addedPerMessage(), { guard: 0.5 }, "ms"),
    atMost("bridge: memory gained over 1 GiB", await memoryGained(), { guard: 32 }, "MiB"),
    atLeast("host: throughput over 512 MiB, beside podman exec -i cat", await throughputBesidePodman(), {
      guard: 0.45,
      goal: 0.9,
    }),
  ];
}

/** The best of many short runs, since other programs use this machine, too. Chunks have the size that pipes give. */
function inspectionSpeed(one: Buffer): number {
  const bytes = block(one, 4 * mebibyte);
  let best = 0;
  for (let run = 0; run < 60; run += 1) {
    const inspector = new Inspector("to-client", policy, () => {});
    let passed = 0;
    const began = process.hrtime.bigint();
    for (let at = 0; at < bytes.length; at += 65_536) {
      for (const piece of inspector.push(bytes.subarray(at, at + 65_536)).pieces) passed += piece.length;
    }
    const seconds = Number(process.hrtime.bigint() - began) / 1e9;
    if (passed !== bytes.length) throw new Error(`only ${passed} of ${bytes.length} bytes passed`);
    best = Math.max(best, bytes.length / mebibyte / seconds);
  }
  return best;
}

/** A message to `cat` and back, with the bridge between and without; both ways pass it once. */
async function addedPerMessage(): Promise<number> {
  const message = frame(300);
  const direct = spawn("cat", { stdio: ["pipe", "pipe", "inherit"] });
  const bridged = spawn("cat", { stdio: ["pipe", "pipe", "inherit"] });
  const client = { input: new PassThrough(), output: new PassThrough() };
  const done = bridge({ client, agent: bridged }, policy, () => {});
  const times: Record<"direct" | "bridged", number[]> = { direct: [], bridged: [] };
  for (let round = 0; round < 2000; round += 1) {
    times.direct.push(await roundTrip(direct.stdin, direct.stdout, message));
    times.bridged.push(await roundTrip(client.input, client.output, message));
  }
  direct.stdin.end();
  client.input.end();
  await done;
  return Math.max(0, median(times.bridged) - median(times.direct)) / 2;
}

async function roundTrip(to: Writable, from: Readable, message: Buffer): Promise<number> {
  const began = process.hrtime.bigint();
  to.write(message);
  for (let got = 0; got < message.length; ) got += ((await once(from, "data")) as [Buffer])[0].length;
  return Number(process.hrtime.bigint() - began) / 1e6;
}

/** What the process has grown by between the first eighth of a gibibyte and the last. */
async function memoryGained(): Promise<number> {
  const chunk = Buffer.concat([block(frame(300), 40_000), frame(100_000)]);
  const most = 1024 * mebibyte;
  let given = 0;
  let taken = 0;
  let early = 0;
  const stdout = new Readable({
    read() {
      setImmediate(() => {
        given += chunk.length;
        this.push(given > most ? null : Buffer.from(chunk));
      });
    },
  });
  const output = new Writable({
    write(bytes: Buffer, _encoding, callback) {
      taken += bytes.length;
      if (taken < most / 8) early = Math.max(early, process.memoryUsage().rss);
      setImmediate(callback);
    },
  });
  let late = 0;
  const watch = setInterval(() => {
    if (taken > (most / 8) * 7) late = Math.max(late, process.memoryUsage().rss);
  }, 5);
  const client = { input: new PassThrough(), output };
  await bridge({ client, agent: { stdin: new PassThrough(), stdout } }, policy, () => {});
  clearInterval(watch);
  if (taken < most * 0.99) throw new Error(`only ${taken} bytes arrived`);
  return Math.max(0, late - early) / mebibyte;
}

/** The same bytes into `cat` and back, in a container by podman alone, and behind a wall by `podbot host`. */
async function throughputBesidePodman(): Promise<number> {
  await using engine = await startPodman(process.env as Record<string, string>);
  const words = ["exec", "-i", startIdle(engine), "cat"];
  const directory = await mkdtemp(join(tmpdir(), "host-"));
  const host = ["host", "--quiet", "--agent", "custom", "--agent-mode", "acp", "--network", "none", "--", "cat"];
  const podman: number[] = [];
  const hosted: number[] = [];
  for (let round = 0; round < 9; round += 1) {
    podman.push(await throughput(spawn("podman", words, { env: engine.env })));
    hosted.push(await throughput(spawn(process.execPath, [podbot, ...host], { cwd: directory })));
  }
  await rm(directory, { recursive: true });
  return median(hosted) / median(podman);
}

/** Bytes per millisecond that come back after a first message, so that the start is not measured. */
async function throughput(child: ChildProcess): Promise<number> {
  const { stdin, stdout } = child as ChildProcess & { stdin: Writable; stdout: Readable };
  const chunk = Buffer.concat([block(frame(300), 30_000), frame(100_000)]);
  const rounds = Math.ceil((512 * mebibyte) / chunk.length);
  const closed = once(child, "close");
  await roundTrip(stdin, stdout, frame(300));
  const began = process.hrtime.bigint();
  let got = 0;
  const all = new Promise<void>((resolve) => {
    stdout.on("data", (bytes: Buffer) => {
      got += bytes.length;
      if (got === rounds * chunk.length) resolve();
    });
  });
  for (let round = 0; round < rounds; round += 1) {
    if (!stdin.write(chunk)) await once(stdin, "drain");
  }
  await Promise.race([all, setTimeout(120_000, undefined, { ref: false })]);
  const milliseconds = Number(process.hrtime.bigint() - began) / 1e6;
  stdin.end();
  await closed;
  if (got !== rounds * chunk.length) throw new Error(`${got} of ${rounds * chunk.length} bytes came back`);
  return got / milliseconds;
}
