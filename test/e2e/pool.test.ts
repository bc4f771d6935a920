import { rmSync } from "node:fs";
import { text } from "node:stream/consumers";
import { afterAll, expect, test } from "vitest";
import type { PartialConfig } from "../../src/config/types.ts";
import { planAgent } from "../../src/keeper/agent.ts";
import { openPool } from "../../src/keeper/pool.ts";
import type { Session } from "../../src/keeper/session.ts";
import { listSessions } from "../../src/keeper/sessions.ts";
import { eventually } from "../eventually.ts";
import { World } from "../world.ts";
import { engine } from "./engines/engine.ts";

const podman = engine("podman");
const world = new World();
const env = { ...world.env, ...podman.env };
afterAll(() => rmSync(world.directory, { recursive: true, force: true }));

function plan(config: PartialConfig = {}, more: Readonly<Record<string, string>> = {}) {
  return planAgent({
    agent: "custom",
    args: ["sh", "-c", "pwd; ls -a; echo ${VALUE-none}; echo >left; hostname"],
    cwd: world.project,
    env: { ...env, ...more },
    config: {
      image: podman.image,
      engine_socket: podman.socket,
      workspace: { source: "empty" },
      sandbox: { pool: 2 },
      agent: { env_allowlist: ["VALUE"] },
      ...config,
    },
  });
}

async function outputOf(session: Session): Promise<string> {
  const agent = await session.run();
  agent.stdin.end();
  const [said] = await Promise.all([text(agent.stdout), text(agent.stderr)]);
  expect((await agent.exited).code).toBe(0);
  return said;
}

test("boxes are prepared, handed out once each, refilled, and gone with the pool", async () => {
  const planned = await plan();
  const ids = new Set<string>();
  {
    await using pool = openPool();
    await using first = await pool.take(planned);
    ids.add(first.id);
    await pool.settled();
    expect(pool.ready(planned)).toBe(2);
    expect((await listSessions(env)).map(({ state }) => state).sort()).toEqual(["prepared", "prepared", "running"]);
    // All at once: nobody gets another's.
    const taken = await Promise.all([1, 2, 3, 4].map(() => pool.take(planned)));
    for (const session of taken) ids.add(session.id);
    expect(ids.size).toBe(5);
    for (const session of taken) expect(await outputOf(session)).toBe("/work\n.\n..\nnone\npodbot\n");
    await Promise.all(taken.map((session) => session.stop(0)));
    await pool.settled();
    expect(pool.ready(planned)).toBe(2);
    // The same plan, made again, is the same; with another value of a variable it is not.
    const again = await plan();
    expect(again.plan).toEqual(planned.plan);
    expect(again.values()).toEqual(planned.values());
    expect(pool.ready(again)).toBe(2);
    const other = await plan({}, { VALUE: "other" });
    expect(pool.ready(other)).toBe(0);
    await using session = await pool.take(other);
    expect(await outputOf(session)).toContain("\nother\n");
  }
  expect(await listSessions(env)).toEqual([]);
  await eventually(() => {
    const left = podman.cli("ps", "-a", "--format", "{{.Names}}", "--filter", "label=podbot.session").stdout;
    for (const id of ids) expect(left).not.toContain(id);
  });
});

test("a box that was ended while it waited is not handed out", async () => {
  const planned = await plan({ sandbox: { pool: 1 } });
  await using pool = openPool();
  await using first = await pool.take(planned);
  await pool.settled();
  const [waiting] = (await listSessions(env)).filter(({ state }) => state === "prepared");
  expect(podman.cli("rm", "-f", "-t", "0", `podbot-${waiting?.id}`).status).toBe(0);
  await using second = await pool.take(planned);
  expect(second.id).not.toBe(waiting?.id);
  expect(await outputOf(second)).toContain("/work\n");
  expect(await outputOf(first)).toContain("/work\n");
});

test("a box with credentials is not for a plan without them", async () => {
  world.file("home/.claude/token", "SECRET\n");
  await using pool = openPool({ size: 1 });
  const withThem = await plan();
  const without = await plan({ creds: { copy_claude: false, copy_codex: false } });
  await using first = await pool.take(withThem);
  await pool.settled();
  expect([pool.ready(withThem), pool.ready(without)]).toEqual([1, 0]);
  await using other = await pool.take(without);
  const read = async (session: Session) => {
    const cat = await session.sandbox.exec({ argv: ["cat", "/root/.claude/token"] });
    cat.stderr.resume();
    return text(cat.stdout);
  };
  expect(await read(other)).toBe("");
  await using same = await pool.take(withThem);
  expect([await read(first), await read(same)]).toEqual(["SECRET\n", "SECRET\n"]);
});

test("one that has waited too long is not handed out either", async () => {
  const planned = await plan({ sandbox: { pool: 1 } });
  await using pool = openPool({ longestWaitMs: 0 });
  await using first = await pool.take(planned);
  await pool.settled();
  const [waiting] = (await listSessions(env)).filter(({ state }) => state === "prepared");
  await using second = await pool.take(planned);
  expect([first.id, waiting?.id]).not.toContain(second.id);
  await pool.settled();
});

test("a plan that mounts the caller's directory says that no box can be prepared", async () => {
  const planned = await plan({ workspace: {} });
  expect(planned.warnings.join("\n")).toContain(`sandbox.pool does not apply: the plan mounts ${world.project}`);
  expect((await plan()).warnings.join("\n")).not.toContain("sandbox.pool");
  await using pool = openPool();
  await using session = await pool.take(planned);
  await pool.settled();
  expect(pool.ready(planned)).toBe(0);
  expect(await outputOf(session)).toContain(world.project);
});
