import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { SessionStep } from "../../src/keeper/session.ts";
import { until } from "../eventually.ts";
import { endless, expectNothingLost, writer } from "./agent.ts";
import { bundle } from "./bundle.ts";
import type { Victim } from "./driver.ts";
import { casesOf, type Errand } from "./errand.ts";
import { expectClean, expectNobody, listing, Machine, namesIn, stopAll } from "./machine.ts";

/** Bundled to where the native programs are found, as any program that uses the library would. */
const driver = join(import.meta.dirname, "../../.make", `faults-${process.pid}.mjs`);

beforeAll(async () => {
  mkdirSync(join(driver, ".."), { recursive: true });
  await bundle(join(import.meta.dirname, "driver.ts"), driver);
});

afterAll(() => rmSync(driver, { force: true }));

const everybody: Readonly<Record<SessionStep, readonly Victim[]>> = {
  recorded: ["keeper"],
  "directory-made": ["keeper"],
  listening: ["keeper"],
  "box-started": ["keeper", "bwrap", "warden"],
  running: ["keeper", "bwrap", "warden"],
  "agent-started": ["keeper", "bwrap", "warden", "agent"],
  "agent-ended": ["keeper", "bwrap", "warden"],
  "box-ended": ["keeper"],
  "end-recorded": ["keeper"],
  "directory-removed": ["keeper"],
  removed: ["keeper"],
};

const cases = casesOf(everybody);

async function run(errand: Errand<Victim>) {
  const machine = await Machine.boot();
  machine.world.repository();
  const before = listing(machine.world.project);
  const outcome = await machine.spawn([process.execPath, driver, JSON.stringify(errand)]).done;
  // What a keeper that was killed has left in its box ends a moment later, and may work until then.
  if (errand.step !== null && errand.victim === "keeper") await expectNobody(machine);
  const started = listing(machine.world.project).includes("work.txt");
  return { machine, outcome, workspace: started ? [...before, "work.txt"].sort() : before, started };
}

const ending: readonly SessionStep[] = ["agent-ended", "box-ended", "end-recorded", "directory-removed", "removed"];

describe("without a kill", () => {
  test.each([false, true])("a session leaves exactly what it should, detached: %s", async (detached) => {
    const command = writer(20) as Errand<Victim>["command"];
    const { machine, outcome, workspace } = await run({ step: null, victim: "keeper", detached, command });
    expect(outcome).toMatchObject({ status: 0, stderr: "" });
    expect(outcome.stdout.split("\n").length).toBe(21);
    expectNothingLost(machine, outcome.stdout);
    const sessions = await machine.ps();
    if (detached) {
      expect(sessions).toMatchObject([{ state: "ended", exit: { code: 0 } }]);
      expect(namesIn(machine.sessions)).toEqual([sessions[0]?.id]);
    } else {
      await expectClean(machine, workspace);
    }
    await stopAll(machine, workspace);
  });

  test("the checks see a session while it runs, and what it holds", async () => {
    const machine = await Machine.boot();
    machine.world.repository();
    const before = listing(machine.world.project);
    const command = writer(endless) as Errand<Victim>["command"];
    const errand: Errand<Victim> = { step: null, victim: "keeper", detached: false, command };
    const { done } = machine.spawn([process.execPath, driver, JSON.stringify(errand)]);
    await until("it works", () => listing(machine.world.project).includes("work.txt"));
    expect(await machine.ps()).toMatchObject([{ state: "running" }]);
    expect(namesIn(machine.runtime).length).toBe(1);
    expect(namesIn(machine.sessions).length).toBe(1);
    expect(namesIn(machine.held).length).toBe(1);
    expect(listing(machine.world.project)).toContain(".podbot/");
    await expect(expectClean(machine, before)).rejects.toThrow();
    await stopAll(machine, [...before, "work.txt"].sort());
    expectNothingLost(machine, (await done).stdout);
  });
});

describe("a SIGKILL leaves nothing that one command does not remove, and loses nothing", () => {
  test.concurrent.each(cases)("at $step, for the $victim, detached: $detached", async ({ step, victim, detached }) => {
    const command = writer(ending.includes(step) ? 20 : endless) as Errand<Victim>["command"];
    const { machine, outcome, workspace, started } = await run({ step, victim, detached, command });
    const sessions = await machine.ps();
    if (victim === "keeper") {
      expect(outcome).toMatchObject({ signal: "SIGKILL", stderr: "" });
      const written = step === "end-recorded" || step === "directory-removed" || step === "removed";
      const gone = step === "removed" && !detached;
      expect(sessions.map(({ state }) => state)).toEqual(gone ? [] : [written ? "ended" : "died"]);
    } else {
      // The keeper lives, sees it, and ends the session in order.
      expect(outcome.signal).toBeNull();
      const states = sessions.map(({ state }) => state);
      // Of a session whose agent never ran, nobody could want to read anything.
      if (started) expect(states).toEqual(detached ? ["ended"] : []);
      else expect(states.filter((state) => state !== "ended")).toEqual([]);
      if (victim === "agent") expect(outcome.status).toBe(137);
      await expectNobody(machine);
      expect(namesIn(machine.runtime)).toEqual([]);
      expect(namesIn(machine.held)).toEqual([]);
    }
    // A box does not outlive its keeper, whoever stops it.
    await expectNobody(machine);
    await stopAll(machine, workspace);
    if (started) expectNothingLost(machine, outcome.stdout);
  });
});
