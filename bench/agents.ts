import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as wait } from "node:timers/promises";
import { planAgent } from "../src/keeper/agent.ts";
import { agentsShown, pathWithAgents } from "../test/e2e/agents/installation.ts";
import { atMost, type Line, median } from "./measure.ts";
import { type Podman, startPodman } from "./podman.ts";
import { makeWorld, type World } from "./start.ts";

const rounds = Number(process.env["BENCH_ROUNDS"] ?? 15);
const podbot = resolve(import.meta.dirname, "../dist/podbot.cjs");

/** How long it takes until a real agent answers for the first time, behind a wall and without one. */
export async function agentLines(): Promise<readonly Line[]> {
  const made = makeWorld();
  const home = join(made.directory, "home");
  mkdirSync(home);
  const world = { ...made, env: { ...made.env, HOME: home, PATH: pathWithAgents() } };
  try {
    await using podman = await startPodman(world.env);
    return [await bubblewrapLine(world), await containerLine(world, podman)];
  } finally {
    rmSync(world.directory, { recursive: true, force: true });
  }
}

async function bubblewrapLine({ cwd, env }: World): Promise<Line> {
  // Podbot sets `quiet`, too. Nothing listens at the model's address, since only the first answer is measured.
  const quiet = { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", DISABLE_AUTOUPDATER: "1" };
  const model = { ANTHROPIC_BASE_URL: "http://127.0.0.1:9", ANTHROPIC_API_KEY: "none" };
  const options = { cwd, env: { ...env, ...quiet, ...model } };
  const passed = Object.keys(model).flatMap((name) => ["--env", name]);
  const format = ["--input-format", "stream-json", "--output-format", "stream-json"];
  const words = ["-p", ...format, "--verbose"];
  const hello = { type: "control_request", request_id: "1", request: { subtype: "initialize" } };
  const times = await measureAnswers({
    node: nodeStart(options),
    bare: answer("claude", words, hello, options),
    walled: answer(
      process.execPath,
      [podbot, "run", "--quiet", ...agentsShown, ...passed, "--agent", "claude", "--", ...words],
      hello,
      options,
    ),
  });
  return atMost(
    `Claude Code's first answer behind bubblewrap, Node's start aside (${(times.walled - times.node).toFixed(0)} ms), beside bare (${times.bare.toFixed(0)} ms)`,
    (times.walled - times.node) / times.bare,
    { guard: 1.4, goal: 1.1 },
  );
}

/** Runs Codex in an empty image, and beside it the same container by `podman run`. */
async function containerLine({ directory, cwd, env }: World, podman: Podman): Promise<Line> {
  const codex = join(env["PATH"]?.split(":")[0] ?? "", "codex");
  // Otherwise Codex tries to reach servers, and does not end until it has given up.
  const quiet = ["-c", "analytics.enabled=false", "-c", "features.plugins=false"];
  const command = [codex, ...quiet, "app-server", "--listen", "stdio://"];
  const params = { clientInfo: { name: "bench", title: "bench", version: "1" } };
  const hello = { id: 1, method: "initialize", params };
  const shown = ["/usr", dirname(dirname(codex))];
  const planned = await planAgent({
    agent: "custom",
    args: command,
    cwd,
    env: { ...env, ...podman.env },
    config: { image: podman.image, engine_socket: podman.socket, filesystem: { ro: shown } },
  });
  const script = join(directory, "by-hand.sh");
  writeFileSync(script, planned.script());
  const flags = ["--engine-socket", podman.socket, "--image", podman.image, ...shown.flatMap((path) => ["--ro", path])];
  const options = { cwd, env: { ...env, ...podman.env } };
  const words = [podbot, "run", "--quiet", ...flags, "--agent", "custom", "--", ...command];
  const times = await measureAnswers({
    node: nodeStart(options),
    podbot: answer(process.execPath, words, hello, options),
    podman: answer("bash", [script], hello, options),
  });
  return atMost(
    `Codex's first answer in a container, Node's start aside (${(times.podbot - times.node).toFixed(0)} ms), beside podman run --rm (${times.podman.toFixed(0)} ms)`,
    (times.podbot - times.node) / times.podman,
    { guard: 1.45, goal: 1.15 },
  );
}

/** Median milliseconds of each subject, in turn like `measure`. The end of a process is awaited, but not measured. */
async function measureAnswers<Name extends string>(
  subjects: Readonly<Record<Name, () => Promise<number>>>,
): Promise<Record<Name, number>> {
  const samples = Object.fromEntries(Object.keys(subjects).map((name) => [name, []])) as Record<string, number[]>;
  for (let round = -1; round < rounds; round++) {
    for (const [name, subject] of Object.entries<() => Promise<number>>(subjects)) {
      const taken = await subject();
      // An engine removes the container in the background.
      await wait(150);
      if (round >= 0) samples[name]?.push(taken);
    }
  }
  const medians = Object.entries(samples).map(([name, values]) => [name, median(values)]);
  return Object.fromEntries(medians) as Record<Name, number>;
}

/** Starts an agent that speaks a protocol, greets it, and takes the time until it has answered. */
function answer(file: string, words: readonly string[], hello: object, options: Parameters<typeof spawn>[2]) {
  return async () => {
    const began = performance.now();
    const child = spawn(file, words, { ...options, stdio: ["pipe", "pipe", "ignore"] });
    const ended = once(child, "close");
    child.stdin?.write(`${JSON.stringify(hello)}\n`);
    const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
    const answered = await Promise.race([once(lines, "line").then(() => true), ended.then(() => false)]);
    const taken = performance.now() - began;
    if (!answered) throw new Error(`${file} ${words[0]} ended without an answer`);
    child.stdin?.end();
    await ended;
    return taken;
  };
}

function nodeStart(options: Parameters<typeof spawn>[2]) {
  return async () => {
    const began = performance.now();
    await once(spawn(process.execPath, ["-e", "0"], { ...options, stdio: "ignore" }), "close");
    return performance.now() - began;
  };
}
