import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { SessionStep } from "../../../src/keeper/session.ts";
import { eventually, until } from "../../eventually.ts";
import { endless, expectNothingLost, writer } from "../../faults/agent.ts";
import { bundle } from "../../faults/bundle.ts";
import { casesOf, type Errand } from "../../faults/errand.ts";
import { listing, namesIn } from "../../faults/machine.ts";
import type { TestEngine } from "../engines/engine.ts";
import type { Extent } from "../extent.ts";
import type { Victim } from "./driver.ts";
import { expectClean, expectNobody, newPlace, stillThere, stopAll } from "./machine.ts";

const everybody: Readonly<Record<SessionStep, readonly Victim[]>> = {
  recorded: ["keeper"],
  "directory-made": ["keeper"],
  listening: ["keeper"],
  "box-started": ["keeper", "warden"],
  running: ["keeper", "warden"],
  "agent-started": ["keeper", "warden", "agent"],
  "agent-ended": ["keeper", "warden"],
  "box-ended": ["keeper"],
  "end-recorded": ["keeper"],
  "directory-removed": ["keeper"],
  removed: ["keeper"],
};

const ending: readonly SessionStep[] = ["agent-ended", "box-ended", "end-recorded", "directory-removed", "removed"];

/** The steps at which the container exists. */
const boxed: readonly SessionStep[] = ["box-started", "running", "agent-started", "agent-ended"];

/**
 * All cases on one engine. Elsewhere only those with a container, or with one being removed. For most cases one of
 * detached and attached is enough; a killed keeper needs both for `the engine's part`, since its container is left
 * alone in one case and ended in the other.
 */
function casesFor(extent: Extent) {
  const all = casesOf(everybody);
  if (extent === "everything") return all;
  return all.filter(({ step, victim, detached }) => {
    if (step === "box-ended") return !detached;
    if (!boxed.includes(step)) return false;
    const isOne = detached === ((boxed.indexOf(step) % 2 === 0) === (victim === "keeper"));
    return isOne || (victim === "keeper" && extent === "the engine's part");
  });
}

/** Kills each process at each step of a session. */
export function steps(open: () => TestEngine, extent: Extent): void {
  /** Holds the bundle beside the native programs, as an installation does. The checkout may belong to another user. */
  let directory = "";
  let driver = "";

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "driver-"));
    driver = join(directory, "dist/driver.mjs");
    for (const name of ["native", "node_modules"]) {
      symlinkSync(join(import.meta.dirname, "../../..", name), join(directory, name));
    }
    await bundle(join(import.meta.dirname, "driver.ts"), driver);
  });

  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  async function run(errand: Errand<Victim>) {
    const { place, before } = newPlace(open());
    const outcome = await place.spawn([process.execPath, driver, JSON.stringify(errand)]).done;
    const started = listing(place.world.project).includes("work.txt");
    return { place, outcome, workspace: started ? [...before, "work.txt"].sort() : before, started };
  }

  describe("without a kill", () => {
    test.concurrent.each([false, true])("a session leaves exactly what it should, detached: %s", async (detached) => {
      const command = writer(20) as Errand<Victim>["command"];
      const { place, outcome, workspace } = await run({ step: null, victim: "keeper", detached, command });
      expect(outcome).toMatchObject({ status: 0, stderr: "" });
      expectNothingLost(place, outcome.stdout);
      const sessions = await place.ps();
      expect(sessions.map(({ state }) => state)).toEqual(detached ? ["ended"] : []);
      await until("the engine has removed the container", async () => (await place.containers()).length === 0);
      await stopAll(place, workspace);
    });

    test.concurrent("the checks see a session while it runs, and what it holds", async () => {
      const { place, before } = newPlace(open());
      const command = writer(endless) as Errand<Victim>["command"];
      const errand: Errand<Victim> = { step: null, victim: "keeper", detached: false, command };
      const { done } = place.spawn([process.execPath, driver, JSON.stringify(errand)]);
      await until("it works", () => listing(place.world.project).includes("work.txt"));
      expect(await place.ps()).toMatchObject([{ state: "running" }]);
      expect(place.boxes()).toEqual(place.directories());
      expect(place.boxes()).toEqual(namesIn(place.sessions));
      const running = [{ name: `podbot-${place.boxes()[0]}`, state: "running" }];
      await eventually(async () => expect(await place.containers()).toEqual(running));
      expect(namesIn(join(place.state, "engines")).length).toBe(1);
      expect(place.claims().length).toBe(1);
      expect(listing(place.world.project)).toContain(".podbot/");
      await expect(expectClean(place, before)).rejects.toThrow();
      await stopAll(place, [...before, "work.txt"].sort());
      expectNothingLost(place, (await done).stdout);
    });
  });

  describe("a SIGKILL leaves nothing that one command does not remove, and loses nothing", () => {
    test.concurrent.each(casesFor(extent))(
      "at $step, for the $victim, detached: $detached",
      async ({ step, victim, detached }) => {
        const command = writer(ending.includes(step) ? 20 : endless) as Errand<Victim>["command"];
        const { place, outcome, workspace, started } = await run({ step, victim, detached, command });
        const boxes = place.boxes();
        const sessions = await place.ps();
        // `ps` must report a container that exists throughout.
        const isThere = boxes.length > 0 && place.boxes().length > 0;
        if (isThere) expect(sessions).toMatchObject([{ id: boxes[0], why: expect.stringMatching(stillThere) }]);
        if (victim === "keeper") {
          expect(outcome).toMatchObject({ signal: "SIGKILL", stderr: "" });
          const written = step === "end-recorded" || step === "directory-removed" || step === "removed";
          const gone = step === "removed" && !detached;
          expect(sessions.map(({ state }) => state)).toEqual(gone ? [] : [written ? "ended" : "died"]);
          // The containers of detached sessions must end by themselves; `stop --all` ends the others.
          if (boxed.includes(step) && detached) await expectOrphanGone(place);
        } else {
          // The keeper notices the kill, and ends the session in order.
          expect(outcome.signal).toBeNull();
          const states = sessions.map(({ state }) => state);
          // A session whose agent never ran may be kept or removed.
          if (started) expect(states).toEqual(detached ? ["ended"] : []);
          else expect(states.filter((state) => state !== "ended")).toEqual([]);
          if (victim === "agent") expect(outcome.status).toBe(137);
          await expectNobody(place);
          expect(place.directories()).toEqual([]);
          expect(place.claims()).toEqual([]);
        }
        await stopAll(place, workspace);
        if (started) expectNothingLost(place, outcome.stdout);
      },
    );
  });
}

/** The warden ends 5 s after its keeper, and the engine removes the container: no command of Podbot helps. */
async function expectOrphanGone(place: ReturnType<typeof newPlace>["place"]): Promise<void> {
  await until("the container ends by itself", async () => {
    return place.boxes().length === 0 && (await place.containers()).length === 0;
  });
}
