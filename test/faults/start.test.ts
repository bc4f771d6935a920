import { readFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { until } from "../eventually.ts";
import { program } from "../world.ts";
import { below, expectClean, kill, listing, Machine, namesIn, type Process, type Running, stopAll } from "./machine.ts";
import { isThorough } from "./thorough.ts";

/** How far a start has come, by what can be seen from outside. */
const stages: Readonly<Record<string, (all: readonly Process[]) => boolean>> = {
  "bubblewrap runs": (all) => all.some(isBwrap),
  "bubblewrap has a child": (all) => childOfBwrap(all) !== undefined,
  "the child is in its namespaces": (all) => isFirst(childOfBwrap(all)),
  "the warden is there": (all) => all.some(({ argv }) => argv[0] === "/run/podbot/warden"),
};

function isBwrap({ argv }: Process): boolean {
  return argv[0] === "bwrap";
}

function childOfBwrap(all: readonly Process[]): Process | undefined {
  const outer = all.find((one) => isBwrap(one) && !all.some((other) => other.pid === one.parent && isBwrap(other)));
  return all.find(({ parent }) => parent === outer?.pid);
}

function isFirst(process: Process | undefined): boolean {
  if (process === undefined) return false;
  try {
    return /^NSpid:.*\t1$/m.test(readFileSync(`/proc/${process.pid}/status`, "latin1"));
  } catch {
    return false;
  }
}

/** Looks as often as it can: the stages are short. */
function reached({ child }: Running, stage: (all: readonly Process[]) => boolean): readonly Process[] {
  for (let tries = 0; tries < 20_000; tries++) {
    const all = below(child.pid);
    if (stage(all)) return all;
  }
  throw new Error("the stage was not seen");
}

describe("whoever is killed while a box is being built leaves no half of it", () => {
  const commands = { run: ["run", "--agent", "custom", "--"], sandbox: ["sandbox", "--"] };
  const cases = Object.keys(stages).flatMap((stage) =>
    (["run", "sandbox"] as const).flatMap((command) =>
      ["podbot", "bwrap"]
        .filter(() => command === "run" || stage !== "the warden is there")
        .map((victim) => ({ stage, command, victim })),
    ),
  );

  test.each(cases)("$victim of podbot $command, once $stage", async ({ stage, command, victim }) => {
    const machine = await Machine.boot();
    machine.world.repository();
    const before = listing(machine.world.project);
    for (let round = 0; round < (isThorough ? 4 : 1); round++) {
      const running = machine.spawn([process.execPath, program, ...commands[command], "sleep", "300"]);
      const all = reached(running, stages[stage] as (all: readonly Process[]) => boolean);
      const found = all.find((one) => (victim === "bwrap" ? isBwrap(one) : one.argv[1] === program));
      expect(kill(found?.pid ?? -1)).toBe(true);
      await running.exited;
      // Whoever survives a bubblewrap ends what it has left, which would wait for ever.
      if (victim === "bwrap") await until("no half is left", () => !machine.processes([running]).some(isBwrap));
      await stopAll(machine, before);
    }
  });
});

describe("sessions that begin and end at the same time", () => {
  test("do not disturb each other, in one workspace", async () => {
    const machine = await Machine.boot();
    machine.world.repository();
    const before = listing(machine.world.project);
    for (let round = 0; round < 4; round++) {
      const runs = [0, 1, 2, 3, 4].map((number) =>
        machine.podbot("run", "--agent", "custom", "--", "sleep", `0.${number}`),
      );
      for (const { status, stderr } of await Promise.all(runs))
        expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    }
    await expectClean(machine, before);
  });

  test("do not disturb each other, wherever their sockets lie", async () => {
    const machine = await Machine.boot();
    machine.world.repository();
    machine.world.env["XDG_RUNTIME_DIR"] = `${machine.world.directory}/run`;
    const workspaces = [0, 1, 2, 3, 4].map((number) => {
      machine.world.file(`home/${number}/file`);
      return `${machine.world.home}/${number}`;
    });
    for (let round = 0; round < 4; round++) {
      const runs = workspaces.map(async (workspace, number) => {
        await wait(number * 60);
        return machine.podbot("run", "--workspace", workspace, "--agent", "custom", "--", "true");
      });
      for (const { status, stderr } of await Promise.all(runs))
        expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    }
  });
});

describe("a session that is kept from another home and another runtime directory", () => {
  async function startElsewhere(machine: Machine): Promise<string> {
    const { env, directory } = machine.world;
    const own = { ...env };
    env["XDG_RUNTIME_DIR"] = `${directory}/run`;
    const { stdout } = await machine.podbot("run", "--detach", "--agent", "custom", "--", "sleep", "300");
    env["HOME"] = `${directory}/other`;
    env["XDG_RUNTIME_DIR"] = `${directory}/other-run`;
    Object.assign(elsewhere, own);
    return stdout.trim();
  }
  const elsewhere: Record<string, string | undefined> = {};

  test("is not said to be dead, and its box is left alone", async () => {
    const machine = await Machine.boot({ mounts: "umount /run/user/*" });
    machine.world.repository();
    const before = listing(machine.world.project);
    const id = await startElsewhere(machine);
    const bwrap = machine.processes().find(isBwrap);
    const said = (await machine.ps()).map(({ state }) => state);
    expect(said.filter((state) => state === "stray" || state === "died")).toEqual([]);
    await machine.podbot("stop", "--all");
    expect(machine.processes().filter(isBwrap)).toEqual([bwrap]);
    Object.assign(machine.world.env, elsewhere, { XDG_RUNTIME_DIR: `${machine.world.directory}/run` });
    expect(await machine.ps()).toMatchObject([{ id, state: "running" }]);
    await stopAll(machine, before);
  });

  test("keeps its sockets while its keeper is too busy to answer", async () => {
    const machine = await Machine.boot();
    const { env, directory } = machine.world;
    machine.world.repository();
    const before = listing(machine.world.project);
    const { HOME } = env;
    await machine.podbot("run", "--detach", "--agent", "custom", "--", "sleep", "300");
    const keeper = machine.processes().find(({ argv }) => argv[2] === "keep");
    kill(keeper?.pid ?? -1, "SIGSTOP");
    env["HOME"] = `${directory}/other`;
    await machine.podbot("stop", "--all");
    env["HOME"] = HOME;
    kill(keeper?.pid ?? -1, "SIGCONT");
    expect(namesIn(machine.runtime).length).toBe(1);
    expect(await machine.ps()).toMatchObject([{ state: "running" }]);
    await stopAll(machine, before);
  });
});
