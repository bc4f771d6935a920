import { spawn, spawnSync } from "node:child_process";
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { planSandbox } from "../src/keeper/sandbox.ts";
import { thisHost } from "../src/machine/host.ts";
import type { Plan } from "../src/plan/plan.ts";
import { renderCommand, renderOptions } from "../src/wall/bubblewrap/render.ts";
import { type SeccompArch, seccompProgram } from "../src/wall/seccomp.ts";
import { atLeast, atMost, forInformation, type Line, measure, median, program, type Subject } from "./measure.ts";
import { installSrt } from "./srt.ts";

const root = resolve(".");
const cli = join(root, "dist/podbot.cjs");
const rounds = Number(process.env["BENCH_ROUNDS"] ?? 40);

/** How long it takes to start something behind the wall, beside starting it otherwise. */
export async function startLines(): Promise<readonly Line[]> {
  const world = makeWorld();
  const bare = makeWorld();
  try {
    const raw = rawBwrap((await plan(bare)).plan, bare);
    return [...(await starts(world, raw)), ...(await commandLine(world, raw)), ...(await wrapped(world))];
  } finally {
    for (const { directory } of [world, bare]) rmSync(directory, { recursive: true, force: true });
  }
}

export interface World {
  readonly directory: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** A project under git, in the caller's own environment and home: what a caller would measure. */
export function makeWorld(): World {
  const directory = mkdtempSync(join(tmpdir(), "world-"));
  const cwd = join(directory, "project");
  mkdirSync(cwd);
  const env = process.env as Record<string, string>;
  for (let at = 0; at < 200; at++) writeFileSync(join(cwd, `file-${at}.txt`), `${at}\n`);
  spawnSync("sh", ["-c", "git init -q && git add . && git -c user.name=b -c user.email=b@b commit -qm one"], {
    cwd,
    env,
  });
  return { directory, cwd, env };
}

const plan = (world: World) =>
  planSandbox({ command: ["true"], cwd: world.cwd, env: world.env, config: { network: { mode: "none" } } });

/** Starts bubblewrap as a program would directly: the same operations, by path, on its command line. */
function rawBwrap(planned: Plan, world: World): Subject {
  for (const directory of planned.kept) mkdirSync(directory, { recursive: true });
  for (const { path, placeholder } of planned.held) {
    if (placeholder.kind === "directory") mkdirSync(path, { recursive: true });
    else if (!existsSync(path)) writeFileSync(path, placeholder.content);
  }
  const blobs: string[] = [];
  const filter = seccompProgram({ arch: thisHost().arch as SeccompArch, nesting: false });
  const options = renderOptions(planned, filter, {
    bind: ({ access, source, target }) => [access === "ro" ? "--ro-bind" : "--bind", source, target],
    copy: ({ source }) => `${2 + blobs.push(source)}`,
    data: (bytes) => {
      const file = join(world.directory, `blob-${blobs.length}`);
      writeFileSync(file, bytes);
      return `${2 + blobs.push(file)}`;
    },
  });
  return async () => {
    const descriptors = blobs.map((file) => openSync(file, "r"));
    await new Promise<void>((done, failed) => {
      const child = spawn("bwrap", [...options, "--", ...renderCommand(planned, 2)], {
        stdio: ["ignore", "ignore", "inherit", ...descriptors],
        env: world.env,
      });
      child.once("close", (code) => (code === 0 ? done() : failed(new Error(`bwrap ended with ${code}`))));
    });
    for (const descriptor of descriptors) closeSync(descriptor);
  };
}

async function starts(world: World, raw: Subject): Promise<readonly Line[]> {
  const silent = [openSync("/dev/null", "r"), openSync("/dev/null", "w"), 2] as const;
  const planned = await plan(world);
  const times = await measure({ raw, start: () => planned.run(silent), plan: () => plan(world) }, rounds);
  return [
    atMost(`library: start a sandbox, beside bwrap alone (${times.raw.toFixed(1)} ms)`, times.start / times.raw, {
      guard: 1.5,
      goal: 1.3,
    }),
    forInformation("library: plan it, reading configuration and filesystem anew", times.plan, "ms"),
  ];
}

async function commandLine(world: World, raw: Subject): Promise<readonly Line[]> {
  const options = { cwd: world.cwd, env: world.env };
  const times = await measure(
    {
      node: program(process.execPath, ["-e", "0"], options),
      raw,
      sandbox: program(process.execPath, [cli, "sandbox", "--", "true"], options),
      offline: program(process.execPath, [cli, "sandbox", "--network", "none", "--", "true"], options),
      help: program(process.execPath, [cli, "--help"], options),
    },
    rounds,
    10,
  );
  const srt = await measureSrt(world);
  return [
    atMost(
      `podbot sandbox -- true, beside node -e 0 and bwrap (${times.node.toFixed(0)} + ${times.raw.toFixed(0)} ms)`,
      times.sandbox / (times.node + times.raw),
      { guard: 1.8, goal: 1.3 },
    ),
    atMost("the same with --network none", times.offline / (times.node + times.raw), { guard: 1.6, goal: 1.3 }),
    atLeast("podbot sandbox -- true, beside srt true: times faster", srt.srt / srt.sandbox, { guard: 2, goal: 3 }),
    atMost("podbot --help, beside node -e 0", times.help / times.node, { guard: 1.25 }),
  ];
}

async function measureSrt(world: World): Promise<{ readonly srt: number; readonly sandbox: number }> {
  const srt = join(installSrt(), "node_modules/.bin/srt");
  writeFileSync(
    join(world.directory, "srt.json"),
    JSON.stringify({
      network: { allowedDomains: [], deniedDomains: [] },
      filesystem: { denyRead: ["~/.ssh"], allowWrite: ["."], denyWrite: [] },
    }),
  );
  const options = { cwd: world.cwd, env: world.env };
  return measure(
    {
      srt: program(srt, ["--settings", join(world.directory, "srt.json"), "true"], options),
      sandbox: program(process.execPath, [cli, "sandbox", "--", "true"], options),
    },
    Math.ceil(rounds / 4),
  );
}

/** Compares `git status` through the wrapper with the real git, inside one sandbox. */
async function wrapped(world: World): Promise<readonly Line[]> {
  const log = join(world.directory, "wrapped.log");
  const script = `for i in $(seq ${rounds}); do for g in git /run/podbot/real/git; do
    a=$EPOCHREALTIME; $g status >/dev/null; b=$EPOCHREALTIME; echo "$g $(( \${b/./} - \${a/./} ))"; done; done`;
  const planned = await planSandbox({ command: ["bash", "-c", script], cwd: world.cwd, env: world.env });
  const output = openSync(log, "w");
  await planned.run([openSync("/dev/null", "r"), output, 2]);
  const times = (name: string) =>
    [...readFileSync(log, "utf8").matchAll(new RegExp(`^${name} (\\d+)$`, "gm"))].map(
      ([, micros]) => Number(micros) / 1_000,
    );
  return [
    atMost(
      "a wrapped git status adds",
      median(times("git")) - median(times("/run/podbot/real/git")),
      { guard: 5 },
      "ms",
    ),
  ];
}
