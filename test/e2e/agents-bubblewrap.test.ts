import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { processesOf, sessionsOf } from "../cli/terminal/remains.ts";
import { newWorld, program, type World } from "../world.ts";
import { cast, type Part } from "./agents/cast.ts";
import { agentsShown, pathWithAgents } from "./agents/installation.ts";
import { type Loopback, openLoopback } from "./agents/loopback.ts";
import { maskedTurns } from "./agents/masked.ts";
import { treeOf } from "./agents/tree.ts";
import { envFlags, runWords } from "./agents/turn.ts";
import { ordinaryIds } from "./engines/user.ts";
import type { Result } from "./shipped.ts";

let path: string;
beforeAll(() => {
  path = pathWithAgents();
});

const root = { uid: 0, gid: 0 };
/** The ordinary user of this suite, who is nobody in particular. */
const somebody = ordinaryIds();

test("the network of these tests has a model, and beside it nobody: who looks for others is told of", async () => {
  await using net = await openLoopback();
  const script = `const say = (what) => (it) => console.log(what, it.status ?? it.code ?? it.cause?.code);
    for (const url of ["${net.url}/v1/models", "http://198.51.100.1/", "http://somewhere.example/"])
      fetch(url).then(say(url), say(url));`;
  const asked = await runWords(net.words([process.execPath, "-e", script], root, "/"), { PATH: path }, "");
  expect(asked.stdout.trim().split("\n").toSorted()).toEqual([
    `${net.url}/v1/models 200`,
    "http://198.51.100.1/ ENETUNREACH",
    "http://somewhere.example/ ENOTFOUND",
  ]);
  expect(new Set((await net.heard()).names)).toEqual(new Set(["somewhere.example"]));
});

describe.concurrent.each(cast)("$name behind bubblewrap", (part) => {
  test("takes a turn with a tool call in a home where nobody has ever used it, as an ordinary user", async ({
    onTestFinished,
  }) => {
    await using net = await openLoopback();
    const world = openWorld(part, net);
    onTestFinished(() => endSessions(world));
    give(world, somebody);
    const before = hostTree(world, []);
    const token = randomBytes(8).toString("hex");
    const turn = await takeTurn(part, world, net, `echo ${token} >made.txt; echo told-${token}`, somebody);
    expectDone(turn, world, token);
    await expectHeard(net, part, token);
    // It has left nothing behind but its work.
    expect(hostTree(world, [])).toEqual(before);
    expectNothingRuns(world);
  });

  test("takes one in a home that it has been used in, and changes nothing there that it obeys", async ({
    onTestFinished,
  }) => {
    await using net = await openLoopback();
    const world = openWorld(part, net);
    onTestFinished(() => endSessions(world));
    for (const order of part.orders) {
      if (!existsSync(join(world.home, order))) world.file(join(world.home, order), contentOf(order));
    }
    // What it leaves in a home without any wall.
    const bare = await runBare(part, world, net, "echo bare");
    expect(bare).toMatchObject({ status: 0 });
    const before = hostTree(world, part.state);
    const recorded = treeOf(world.home, []);
    const token = randomBytes(8).toString("hex");
    const attack = attackOn(part.orders);
    await net.heard();
    const turn = await takeTurn(part, world, net, `${attack}; echo ${token} >made.txt; echo told-${token}`, root);
    expectDone(turn, world, token);
    await expectHeard(net, part, token);
    expect(hostTree(world, part.state)).toEqual(before);
    // But what it has to remember, it could write down.
    if (part.state.length > 0) expect(treeOf(world.home, [])).not.toEqual(recorded);
    expectNothingRuns(world);
    // Without a wall the same words change every one of them.
    expect(world.outside(attack).status).toBe(0);
    for (const order of part.orders) expect(readFileSync(join(world.home, order), "utf8"), order).toContain("evil");
  });
});

maskedTurns("bubblewrap", null);

/** A world with what a user sets up for this agent. */
function openWorld(part: Part, net: Loopback): World {
  const world = newWorld();
  world.env["PATH"] = path;
  world.repository();
  for (const [file, content] of Object.entries(part.files(net.url))) world.file(join(world.home, file), content);
  return world;
}

async function endSessions(world: World): Promise<void> {
  await world.podbot(["stop", "--all", "--time", "1ms"]);
}

function give(world: World, { uid, gid }: typeof root): void {
  expect(spawnSync("chown", ["-R", `${uid}:${gid}`, world.directory]).status).toBe(0);
}

/** Something that the agent can read, so that it starts. */
function contentOf(order: string): string {
  return /\.json$/.test(order) ? "{}\n" : order.endsWith(".yaml") ? "{}\n" : "# an order\n";
}

/** Adds a word to each, where that can be done; and says whether all went well. */
function attackOn(orders: readonly string[]): string {
  const each = `for f in ${orders.join(" ")}; do mkdir -p "$(dirname ~/$f)" && echo evil >>~/$f || bad=1; done`;
  return `(bad=0; ${each}; test $bad = 0) 2>/dev/null`;
}

async function takeTurn(part: Part, world: World, net: Loopback, command: string, as: typeof root): Promise<Result> {
  const prompt = `As told:\n${part.call(command)}`;
  const flags = ["--network", "open", ...envFlags(part.env(net.url))];
  const podbot = [
    process.execPath,
    program,
    "run",
    "--agent",
    part.name,
    ...agentsShown,
    ...flags,
    "--",
    ...part.words(prompt),
  ];
  return runWords(net.words(podbot, as, world.project), world.env, part.input(prompt));
}

/** The same agent in the same network without a wall. */
async function runBare(part: Part, world: World, net: Loopback, command: string): Promise<Result> {
  const prompt = `As told:\n${part.call(command)}`;
  const env = { ...world.env, ...part.env(net.url), IS_SANDBOX: "1" };
  return runWords(net.words([part.name, ...part.words(prompt)], root, world.project), env, part.input(prompt));
}

function expectDone({ status, stdout, stderr }: Result, world: World, token: string): void {
  expect({ status, said: stdout.includes(`told-${token}`), stderr: status === 0 ? "" : stderr }).toEqual({
    status: 0,
    said: true,
    stderr: "",
  });
  expect(readFileSync(join(world.project, "made.txt"), "utf8")).toBe(`${token}\n`);
}

/** The model has seen what the tool said, with the key that was meant for it; and nobody was asked for any name. */
async function expectHeard(net: Loopback, part: Part, token: string): Promise<void> {
  const { requests, names } = await net.heard();
  const told = requests.filter(({ results }) => results?.some((result) => result.includes(`told-${token}`)));
  expect(told.length).toBeGreaterThan(0);
  const keys = [...Object.values(part.env("")), ...Object.values(part.files(""))].join(" ");
  for (const { headers } of told) {
    const key = String(headers["x-api-key"] ?? headers["authorization"]).replace(/^Bearer /, "");
    expect(keys).toContain(key);
  }
  expect(names).toEqual([]);
}

/** The home as the host has it, but for the workspace, what Podbot keeps for itself, and these. */
function hostTree(world: World, but: readonly string[]): Readonly<Record<string, string>> {
  const { ".local": _, ".local/state": __, ...rest } = treeOf(world.home, ["project", ".local/state/podbot", ...but]);
  return rest;
}

function expectNothingRuns(world: World): void {
  expect(sessionsOf(world)).toEqual([]);
  expect(processesOf(world)).toEqual([]);
}
