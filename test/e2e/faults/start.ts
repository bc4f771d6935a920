import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { soon, until } from "../../eventually.ts";
import { kill } from "../../faults/machine.ts";
import type { TestEngine } from "../engines/engine.ts";
import type { Extent } from "../extent.ts";
import { GoBetween, type Moment, type Question } from "./go-between.ts";
import { type EnginePlace, newPlace, stillThere, stopAll } from "./machine.ts";

const moments: readonly (readonly [Question, Moment])[] = [
  ["create", "asked"],
  ["create", "passed on"],
  ["create", "answered"],
  ["start", "asked"],
  ["start", "passed on"],
  ["start", "answered"],
];

const cases = moments.flatMap(([question, moment]) =>
  [false, true].map((detached) => ({ question, moment, detached })),
);

/**
 * All cases on one engine. Elsewhere only those whose request the engine receives, since engines differ in what they do
 * with it. That does not depend on who asked for the session, so one of detached and attached is enough.
 */
function casesFor(extent: Extent) {
  if (extent === "everything") return cases;
  return cases.filter(({ question, moment, detached }) => moment !== "asked" && detached === (question === "start"));
}

const command = ["--quiet", "--agent", "custom", "--", "sleep", "300"];

/** Kills or interrupts the program itself around the creation and the start of its container. */
export function start(open: () => TestEngine, extent: Extent): void {
  async function between() {
    const { place, before } = newPlace(open(), (world) => join(world.directory, "engine.sock"));
    const goBetween = await GoBetween.open(place.socket, place.engine.socket);
    return { place, before, goBetween, [Symbol.dispose]: () => goBetween[Symbol.dispose]() };
  }

  describe("a keeper that is killed while it has a container made", () => {
    test.concurrent.each(casesFor(extent))(
      "once the engine's $question is $moment, detached: $detached",
      async ({ question, moment, detached }) => {
        using site = await between();
        const { place, before, goBetween } = site;
        const killed = new Promise<boolean>((resolve) => {
          goBetween.at(question, moment, () => {
            resolve(kill(keeperOf(place, detached)));
            return moment === "asked" ? "hold" : "go on";
          });
        });
        const running = place.start("run", ...(detached ? ["--detach"] : []), ...command);
        expect(await killed).toBe(true);
        const { status, signal, stderr } = await running.done;
        // A detached start reports failure. It may also report success, because the container can be running before
        // the engine has answered.
        if (!detached) expect(signal).toBe("SIGKILL");
        else if (question === "start" && moment !== "asked") expect([0, 125]).toContain(status);
        else expect(status).toBe(125);
        expect(stderr).not.toContain("defect");
        // The engine completes a request that it has received. A container that it has started ends without its keeper,
        // and the engine removes it.
        const isRefused = question === "create" && moment === "passed on" && !(await isCreated(site));
        const stays = question === "create" ? moment !== "asked" && !isRefused : moment === "asked";
        if (stays) await until("the container is there", async () => (await place.containers()).length === 1);
        if (isRefused) expect(await place.containers()).toEqual([]);
        const [listed, ...others] = await place.ps();
        expect(listed).toMatchObject({ state: "died" });
        if (stays) expect(listed?.why).toMatch(stillThere);
        expect(others).toEqual([]);
        await stopAll(place, before);
      },
    );
  });

  // The engine never receives the request, so one engine is enough.
  if (extent !== "everything") return;
  describe("a start that hangs", () => {
    test.concurrent.each(["create", "start"] as const)(
      "at the engine's %s, is given up at Ctrl-C, and nothing is left",
      async (question) => {
        using site = await between();
        const { place, before, goBetween } = site;
        const held = new Promise<void>((resolve) => {
          goBetween.at(question, "asked", () => {
            resolve();
            return "hold";
          });
        });
        const running = place.start("run", ...command);
        await held;
        kill(running.child.pid ?? -1, "SIGINT");
        const { status, stderr } = await soon("it is given up", running.done);
        expect({ status, stderr }).toEqual({ status: 130, stderr: "" });
        await stopAll(place, before);
      },
    );
  });
}

/**
 * Whether the engine has created the container. Placeholders go with the keeper, so an engine that is slow to look at
 * its mounts finds one missing, and refuses.
 */
async function isCreated({ place, goBetween }: { place: EnginePlace; goBetween: GoBetween }): Promise<boolean> {
  await until("the engine answers", () => goBetween.answerTo("create") !== null);
  const answer = goBetween.answerTo("create") ?? "";
  if (answer.startsWith("HTTP/1.1 201 ")) return true;
  expect(answer).toMatch(/^HTTP\/1\.1 [45]/);
  expect(answer).toContain(`${place.world.project}/`);
  return false;
}

function keeperOf(place: EnginePlace, detached: boolean): number {
  return place.commands(detached ? "keep" : "run")[0]?.pid ?? -1;
}
