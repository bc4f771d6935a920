import { spawn, spawnSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { startSession } from "../src/keeper/kept-session.ts";
import { planSandbox } from "../src/keeper/sandbox.ts";
import type { Session } from "../src/keeper/session.ts";
import type { Sandbox } from "../src/sandbox/sandbox.ts";
import { atLeast, atMost, type Line, measure, program } from "./measure.ts";
import { startIdle, startPodman } from "./podman.ts";
import { makeWorld, type World } from "./start.ts";

const rounds = Number(process.env["BENCH_ROUNDS"] ?? 40);
const mebibytes = 1024;

/** What it costs to do something in a session that runs already. */
export async function sessionLines(): Promise<readonly Line[]> {
  const world = makeWorld();
  try {
    const session = await start(world);
    try {
      // Podman comes last, because it cleans up in the background.
      return [
        idleCost(session),
        await throughput(session.sandbox),
        await crowd(world),
        ...(await execs(session, world)),
      ];
    } finally {
      await session.stop();
    }
  } finally {
    rmSync(world.directory, { recursive: true, force: true });
  }
}

async function start({ cwd, env }: World): Promise<Session> {
  return startSession(await planSandbox({ command: ["true"], cwd, env, session: true }));
}

async function execs({ sandbox }: Session, world: World): Promise<readonly Line[]> {
  await using engine = await startPodman(world.env);
  const options = { env: engine.env };
  const idle = startIdle(engine);
  const times = await measure(
    { exec: () => execTrue(sandbox), podman: program("podman", ["exec", idle, "true"], options) },
    rounds,
  );
  return [
    atMost("library: exec of true in a running session", times.exec, { guard: 5 }, "ms"),
    atLeast(
      `library: exec of true, beside podman exec (${times.podman.toFixed(0)} ms): times faster`,
      times.podman / times.exec,
      { guard: 20 },
    ),
  ];
}

async function execTrue(sandbox: Sandbox): Promise<void> {
  const { stdout, stderr, exited } = await sandbox.exec({ argv: ["true"] });
  stdout.resume();
  stderr.resume();
  const { code } = await exited;
  if (code !== 0) throw new Error(`true ended with ${code}`);
}

/** Output of a process inside, beside that of a Node process on a pipe: both are read here. */
async function throughput(sandbox: Sandbox): Promise<Line> {
  const bytes = mebibytes * 1024 * 1024;
  const script = `const piece = Buffer.alloc(65536); let left = ${bytes / 65536};
    (function more() { while (left-- > 0) if (!process.stdout.write(piece)) return process.stdout.once("drain", more); })()`;
  const times = await measure(
    {
      pipe: async () => {
        const child = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "pipe", "inherit"] });
        await drain(child.stdout, bytes);
      },
      session: async () => {
        const { stdout, stderr, exited } = await sandbox.exec({
          argv: ["dd", "if=/dev/zero", "bs=64k", `count=${bytes / 65536}`],
        });
        stderr.resume();
        await drain(stdout, bytes);
        await exited;
      },
    },
    9,
  );
  const rate = (ms: number) => `${(mebibytes / (ms / 1_000)).toFixed(0)} MiB/s`;
  return atLeast(
    `output of a session (${rate(times.session)}), beside a pipe between two Node processes (${rate(times.pipe)})`,
    times.pipe / times.session,
    { guard: 0.7 },
  );
}

async function drain(stream: NodeJS.ReadableStream, expected: number): Promise<void> {
  let count = 0;
  stream.on("data", (bytes: Buffer) => {
    count += bytes.length;
  });
  await new Promise((resolve) => stream.once("end", resolve));
  if (count !== expected) throw new Error(`${count} bytes came instead of ${expected}`);
}

/** Memory of all processes in the box: those that have it as their pid namespace. */
function idleCost(session: Session): Line {
  const boxes = spawnSync("ps", ["-eo", "pid=,args="], { encoding: "utf8" }).stdout.split("\n");
  const inside = boxes
    .filter((line) => line.includes(`/run/podbot/warden /run/podbot/in/${session.id}.sock`) && !/bwrap/.test(line))
    .map((line) => Number(line.trim().split(" ")[0]));
  if (inside.length === 0) throw new Error("there is no process in the box");
  const kibibytes = inside
    .map((pid) => Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1]))
    .reduce((sum, size) => sum + size, 0);
  return atMost("memory of an idle session inside the box", kibibytes / 1024, { guard: 2 }, "MiB");
}

/** All of them run at the same time, and each answers. */
async function crowd(world: World): Promise<Line> {
  const count = 100;
  const began = performance.now();
  const starts = await Promise.allSettled(Array.from({ length: count }, () => start(world)));
  const sessions = starts.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
  try {
    const answers = await Promise.allSettled(sessions.map(({ sandbox }) => execTrue(sandbox)));
    const answering = answers.filter(({ status }) => status === "fulfilled").length;
    const seconds = (performance.now() - began) / 1_000;
    return {
      what: `sessions at once, each started and answering (all after ${seconds.toFixed(1)} s)`,
      figure: `${answering}`,
      bars: `guard ≥ ${count}`,
      pass: answering >= count,
    };
  } finally {
    await Promise.all(sessions.map((session) => session.stop()));
  }
}
