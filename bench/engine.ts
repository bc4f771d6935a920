import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { adapterOf } from "../src/agents/adapter.ts";
import { agents } from "../src/agents/table.ts";
import type { PartialConfig } from "../src/config/types.ts";
import { buildLayers } from "../src/engine/build.ts";
import { connectEngine } from "../src/engine/client.ts";
import { parseEndpoint } from "../src/engine/endpoint.ts";
import { inspectImage } from "../src/engine/images.ts";
import { composeRecipe } from "../src/image/build.ts";
import { contextArchive } from "../src/image/context.ts";
import { inputsHash, labelsFor } from "../src/image/recipe.ts";
import { planAgent } from "../src/keeper/agent.ts";
import { startSession } from "../src/keeper/kept-session.ts";
import type { PlannedSandbox } from "../src/keeper/planned.ts";
import { openPool } from "../src/keeper/pool.ts";
import type { Session } from "../src/keeper/session.ts";
import { systemPath } from "../src/machine/programs.ts";
import { atMost, type Line, measure, median, program } from "./measure.ts";
import { type Podman, startPodman } from "./podman.ts";
import { makeWorld, type World } from "./start.ts";

const rounds = Number(process.env["BENCH_ROUNDS"] ?? 25);

/** What a container costs, beside the engine's own command line. */
export async function engineLines(): Promise<readonly Line[]> {
  const made = makeWorld();
  // A home without credentials: podman run copies none.
  const home = join(made.directory, "home");
  mkdirSync(home);
  const world = { ...made, env: { ...made.env, HOME: home } };
  try {
    await using podman = await startPodman(world.env);
    return [
      await runLine(world, podman),
      await handOutLine(world, podman),
      await execLine(world, podman),
      await imageLine(world, podman),
    ];
  } finally {
    rmSync(world.directory, { recursive: true, force: true });
  }
}

function plan({ cwd, env }: World, podman: Podman, config: PartialConfig = {}): Promise<PlannedSandbox> {
  return planAgent({
    agent: "custom",
    args: ["true"],
    cwd,
    env: { ...env, ...podman.env },
    config: { image: podman.image, engine_socket: podman.socket, filesystem: { ro: ["/usr"] }, ...config },
  });
}

/** Compares with the same container by `podman run`: the script of `--dry-run` has the same options. */
async function runLine(world: World, podman: Podman): Promise<Line> {
  const planned = await plan(world, podman);
  const script = join(world.directory, "by-hand.sh");
  writeFileSync(script, planned.script());
  const podbot = resolve(import.meta.dirname, "../dist/podbot.cjs");
  const flags = ["--engine-socket", podman.socket, "--image", podman.image, "--ro", "/usr", "--quiet"];
  const options = { cwd: world.cwd, env: podman.env };
  const times = await measure(
    {
      node: program(process.execPath, ["-e", "0"], options),
      podbot: program(process.execPath, [podbot, "run", ...flags, "--agent", "custom", "--", "true"], options),
      podman: program("bash", [script], options),
    },
    rounds,
    // The engine removes either container in the background.
    150,
  );
  return atMost(
    `podbot run of true in a container, Node's start aside (${(times.podbot - times.node).toFixed(0)} ms), beside podman run --rm (${times.podman.toFixed(0)} ms)`,
    (times.podbot - times.node) / times.podman,
    { guard: 1.05, goal: 0.7 },
  );
}

async function handOutLine(world: World, podman: Podman): Promise<Line> {
  const planned = await plan(world, podman, { workspace: { source: "empty" }, sandbox: { pool: 1 } });
  await using pool = openPool();
  const samples: number[] = [];
  for (let round = -1; round < Math.min(rounds, 15); round++) {
    await pool.settled();
    const began = performance.now();
    await using session = await pool.take(planned);
    if (round >= 0) samples.push(performance.now() - began);
    await execTrue(session);
  }
  return atMost("library: hand-out of a prepared box", median(samples), { guard: 10 }, "ms");
}

async function execLine(world: World, podman: Podman): Promise<Line> {
  await using session = await startSession(await plan(world, podman));
  const { exec } = await measure({ exec: () => execTrue(session) }, rounds * 2);
  return atMost("library: exec of true in a running container", exec, { guard: 8 }, "ms");
}

/** The labels of an empty image claim the inputs that a build would use now, so that the build finds no change. */
async function imageLine(world: World, podman: Podman): Promise<Line> {
  const tag = "localhost/podbot-bench-built:latest";
  const names = ["claude", "codex"];
  const env = { ...podman.env, PATH: systemPath(podman.env["PATH"] ?? "") };
  const chosen = agents
    .filter(({ name }) => names.includes(name))
    .flatMap((agent) => [agent, ...[adapterOf(agent)].flatMap((adapter) => adapter ?? [])]);
  const { recipe } = composeRecipe(chosen, { env, home: podman.env["HOME"] ?? "/" });
  using client = connectEngine(parseEndpoint(podman.socket));
  const base = (await inspectImage(client, podman.image))?.id.replace("sha256:", "") ?? "";
  const content = Buffer.from(`FROM ${base}\n`);
  await buildLayers(client, {
    flavour: "podman",
    context: contextArchive([{ name: "Containerfile", mode: 0o644, content }]),
    args: {},
    labels: labelsFor(recipe, { inputs: inputsHash(recipe, base), base: podman.image, software: {} }),
    tag,
    ulimits: [],
    onSaid: () => {},
  });
  const podbot = resolve(import.meta.dirname, "../dist/podbot.cjs");
  const words = ["image", "build", "--agents", names.join(","), "--base", podman.image, "--tag", tag];
  const again = program(process.execPath, [podbot, ...words, "--engine-socket", podman.socket], {
    cwd: world.cwd,
    env: podman.env,
  });
  const { build } = await measure({ build: again }, Math.min(rounds, 10));
  return atMost("podbot image build where nothing has changed", build, { guard: 2_000 }, "ms");
}

async function execTrue({ sandbox }: Session): Promise<void> {
  const { stdout, stderr, exited } = await sandbox.exec({ argv: ["true"] });
  stdout.resume();
  stderr.resume();
  const { code } = await exited;
  if (code !== 0) throw new Error(`true ended with ${code}`);
}
