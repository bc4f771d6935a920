import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { connectEngine } from "../../src/engine/client.ts";
import { planSandbox } from "../../src/keeper/sandbox.ts";
import { findNativePrograms } from "../../src/machine/programs.ts";
import type { Plan } from "../../src/plan/plan.ts";
import { openSandbox } from "../../src/sandbox/open.ts";
import { EngineWall } from "../../src/wall/engine/wall.ts";
import type { Box, BoxBirth } from "../../src/wall/wall.ts";
import { World } from "../world.ts";
import { engine, type TestEngine } from "./engines/engine.ts";

/** A workspace under git that an agent has prepared, and the wall that is to be built around it. */
class Trap {
  readonly world = new World();
  readonly secret = join(this.world.directory, "secret");
  readonly #engine: TestEngine;
  readonly #client;
  #count = 0;

  constructor(used: TestEngine) {
    this.#engine = used;
    this.#client = connectEngine({ kind: "unix", path: used.socket });
    this.world.repository();
    mkdirSync(this.secret);
    writeFileSync(join(this.secret, "file"), "TOPSECRET\n");
  }

  at(path: string): string {
    return join(this.world.project, path);
  }

  async plan(): Promise<Plan> {
    const { plan } = await planSandbox({
      command: ["true"],
      session: true,
      cwd: this.world.project,
      env: { ...this.world.env, ...this.#engine.env },
      config: { image: this.#engine.image, engine_socket: this.#engine.socket },
    });
    return plan;
  }

  start(plan: Plan, furnish?: BoxBirth["furnish"]): Promise<Box> {
    const wall = new EngineWall({
      client: this.#client,
      native: findNativePrograms(),
      heldDirectory: join(this.world.home, ".local/state/podbot/held"),
      owner: this.world.directory.replaceAll(/[^a-zA-Z0-9]/g, "-"),
    });
    this.#count += 1;
    const id = `trap${this.world.directory
      .slice(-3)
      .toLowerCase()
      .replaceAll(/[^a-z0-9]/g, "x")}${String(this.#count).padStart(3, "0")}`;
    const directory = join(this.world.directory, "run", id);
    mkdirSync(directory, { mode: 0o700 });
    return wall.start(plan, { id, directory, env: {}, ...(furnish === undefined ? {} : { furnish }) });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client[Symbol.dispose]();
    rmSync(this.world.directory, { recursive: true, force: true });
  }
}

async function shell(box: Box, script: string): Promise<string> {
  const { stdin, stdout, stderr } = await openSandbox(box).exec({ argv: ["sh", "-c", script] });
  stdin.end();
  const [said, complaint] = await Promise.all([text(stdout), text(stderr)]);
  return said + complaint;
}

/** Whatever its name is by now. */
function contentOf(descriptor: number): string {
  return readFileSync(`/proc/self/fd/${descriptor}`, "utf8");
}

describe.each(["podman", "docker"] as const)("an agent that has prepared the workspace for %s", (name) => {
  test("mounts nothing else by a name that an engine could read as an option", async () => {
    await using trap = new Trap(engine(name));
    const names = ["inc,src=etc", 'inc"x', "inc,destination=mnt", "inc\nx", "inc:x", "inc\\x"];
    for (const each of ["inc", ...names]) mkdirSync(trap.at(each));
    mkdirSync(trap.at(".podbot"));
    writeFileSync(trap.at(".podbot/config.json"), JSON.stringify({ filesystem: { ro: names } }));
    await using box = await trap.start(await trap.plan());
    expect(await shell(box, "ls -A inc mnt; cat inc/hostname")).not.toContain("vm");
    expect(await shell(box, "ls -A inc")).toBe("");
    for (const each of names) {
      const attempt = await shell(box, `touch '${each.replaceAll("'", "'\\''")}/new'`);
      expect(attempt, each).toContain("Read-only file system");
    }
    expect(await shell(box, "touch inc/new && ls inc")).toBe("new\n");
  });

  test("gets nothing by swapping a protected name for a link after the last look", async () => {
    await using trap = new Trap(engine(name));
    const plan = await trap.plan();
    // The container is made, and not started yet.
    const swap = async () => {
      renameSync(trap.at(".git/hooks"), trap.at("kept"));
      symlinkSync(trap.secret, trap.at(".git/hooks"));
    };
    const starting = trap.start(plan, swap);
    await expect(starting).rejects.toMatchObject({
      code: expect.stringMatching(/PATH_CHANGED|CONTAINER_START_FAILED/),
    });
    rmSync(trap.at(".git/hooks"));
    renameSync(trap.at("kept"), trap.at(".git/hooks"));
    await using box = await trap.start(await trap.plan());
    expect(await shell(box, "touch .git/hooks/new")).toContain("Read-only file system");
  });

  test("gets nothing by swapping a name that Podbot holds", async () => {
    await using trap = new Trap(engine(name));
    // Missing, so that Podbot makes it for the time of the run: nobody has looked at it.
    rmSync(trap.at(".git/hooks"), { recursive: true });
    const plan = await trap.plan();
    expect(plan.held.map(({ path }) => path)).toContain(trap.at(".git/hooks"));
    const swap = async () => {
      rmSync(trap.at(".git/hooks"), { recursive: true });
      symlinkSync(trap.secret, trap.at(".git/hooks"));
    };
    await expect(trap.start(plan, swap)).rejects.toMatchObject({
      code: expect.stringMatching(/PATH_CHANGED|CONTAINER_START_FAILED/),
    });
    expect(lstatSync(trap.at(".git/hooks")).isSymbolicLink()).toBe(true);
  });

  test("makes nothing that git would obey in place of what there is", async () => {
    await using trap = new Trap(engine(name));
    trap.world.git("config", "include.path", "../local.gitconfig");
    {
      await using box = await trap.start(await trap.plan());
      for (const place of ["refs/x", "commondir/x", ".git/remotes/x", ".git/branches/x", "local.gitconfig"]) {
        expect(await shell(box, `touch ${place}`), place).toContain("Read-only file system");
      }
      expect(await shell(box, "mkdir objects && touch HEAD && ls -d objects HEAD")).toBe("HEAD\nobjects\n");
    }
    for (const left of ["refs", "commondir", ".git/remotes", "local.gitconfig"]) {
      expect(existsSync(trap.at(left)), left).toBe(false);
    }
  });

  test("gets nothing by swapping it and swapping it back, however often it tries", async () => {
    await using trap = new Trap(engine(name));
    const plan = await trap.plan();
    symlinkSync(join(trap.secret, "file"), trap.at(".git/other"));
    const config = openSync(trap.at(".git/config"), "r");
    const meant = contentOf(config);
    const exchange = `import ctypes, sys, time
libc, end = ctypes.CDLL(None), time.monotonic() + 200
while time.monotonic() < end:
    libc.renameat2(-100, b"config", -100, b"other", 2); time.sleep(0.004)
    libc.renameat2(-100, b"config", -100, b"other", 2); time.sleep(0.004)`;
    const python = spawn("python3", ["-c", exchange], { cwd: trap.at(".git"), stdio: "ignore" });
    const exited = once(python, "exit");
    const outcomes: string[] = [];
    try {
      for (let tries = 0; tries < 12; tries++) {
        const starting = trap.start(plan);
        const refusal = await starting.then(
          () => undefined,
          (error: unknown) => error,
        );
        if (refusal !== undefined) {
          expect(refusal).toMatchObject({ code: expect.stringMatching(/PATH_CHANGED|CONTAINER_START_FAILED/) });
          outcomes.push("refused");
          continue;
        }
        await using box = await starting;
        // The name may be swapped again by now, and lead to a file of the container's own. What counts is the true one.
        const said = await shell(box, "cat .git/config; echo x >> .git/config; echo x >> .git/open && echo WROTE");
        expect(said).not.toContain("TOPSECRET");
        expect(said).toContain("WROTE");
        expect(contentOf(config)).toBe(meant);
        outcomes.push("started");
      }
    } finally {
      python.kill("SIGKILL");
      await exited;
      closeSync(config);
    }
    expect(outcomes).toContain("refused");
    expect(readFileSync(join(trap.secret, "file"), "utf8")).toBe("TOPSECRET\n");
  });
});
