import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { until } from "../../eventually.ts";
import { chance } from "../../faults/chance.ts";
import { crowd, draw, type Fate, live, type Stage, workspacesOf } from "../../faults/fate.ts";
import { expectWhole, kill, listing, namesIn, type Process, type Running } from "../../faults/machine.ts";
import type { TestEngine } from "../engines/engine.ts";
import { EnginePlace, isPodbot, isWarden, stopAll, wardenName } from "./machine.ts";

/** Rounds of several sessions at once, and every session loses somebody: 8 × 5 moments. */
const rounds = 8;

/** As wide as sessions here take from their start to their end, five at once. */
const widestMs = 2_500;

/** Who may be killed, in words of what `/proc` shows. */
const victims: Readonly<Record<string, (process: Process, all: readonly Process[]) => boolean>> = {
  run: (process) => isPodbot(process, "run"),
  keep: (process) => isPodbot(process, "keep"),
  exec: (process) => isPodbot(process, "exec"),
  stop: (process) => isPodbot(process, "stop"),
  warden: isWarden,
  attendant: (process, all) => process.argv[0] === wardenName && !isWarden(process, all),
  agent: ({ argv }) => argv[0] === "sh" && argv[2]?.includes("work.txt") === true,
};

/** Who was killed, or null. */
function murder(place: EnginePlace, fate: Fate): string | null {
  const all = place.processes();
  for (const kind of fate.victims) {
    const found = all.find((process) => victims[kind]?.(process, all));
    if (found !== undefined && kill(found.pid)) return kind;
  }
  return null;
}

function stageOf(place: EnginePlace): Stage {
  return {
    sessions: place.sessions,
    spawn: (words, cwd) => place.spawn(words, cwd),
    murder: (fate) => murder(place, fate),
    companyMs: ({ afterMs }) => afterMs / 4,
  };
}

/** Whoever is killed at whichever moment. */
export function moments(open: () => TestEngine): void {
  describe("whoever is killed, and whenever", () => {
    test("ps tells the truth, and stop leaves nothing", async () => {
      const seed = Number(process.env["FAULTS_SEED"] ?? Date.now() % 1_000_000);
      const pick = chance(seed);
      const place = new EnginePlace(open());
      const workspaces = workspacesOf(place.world);
      const names = listing(workspaces[0] as string);
      const project = listing(place.world.project);
      const killed: string[] = [];
      for (let round = 0; round < rounds; round++) {
        const fates = workspaces.map(() => draw(pick, Object.keys(victims), widestMs));
        const commands: Running[] = [];
        try {
          const murders = fates.map((fate, number) =>
            live(stageOf(place), workspaces[number] as string, fate, commands),
          );
          killed.push(...(await Promise.all(murders)));
          await expectTruth(place);
          await until("who starts is recorded", () => isRecorded(place));
          await stopLate(place);
          await stopAll(place, project);
          for (const workspace of workspaces) expectWhole(place.world, workspace, names);
          const outcomes = await Promise.all(commands.map(({ done }) => done));
          // Whatever failed, failed for a reason that is said.
          for (const { stderr } of outcomes) expect(stderr).not.toContain("defect");
        } catch (error) {
          throw new Error(
            `seed ${seed}, round ${round}: ${JSON.stringify(fates)}\nkilled ${killed.join(" ")}\n${(error as Error).stack}`,
            { cause: error },
          );
        }
      }
      expect(killed.length).toBe(rounds * crowd);
      expect(new Set(killed).size).toBeGreaterThan(4);
    });
  });
}

/** An engine finishes what it was asked before its caller died: that is there when one command has ended all others. */
async function stopLate(place: EnginePlace): Promise<void> {
  await place.podbot("stop", "--all", "--time", "1");
  await until("who is stopped ends", () => ["run", "keep"].every((name) => place.commands(name).length === 0));
}

/**
 * A session is only said to run if its box is there at some time of the question: it may begin and end meanwhile, and
 * between two looks. Then the question is asked again: whoever errs errs again.
 */
async function expectTruth(place: EnginePlace, tries = 3): Promise<void> {
  const before = place.boxes();
  const meanwhile = new Set(before);
  const looking = setInterval(() => {
    for (const id of place.boxes()) meanwhile.add(id);
  }, 50);
  const sessions = await place.ps().finally(() => clearInterval(looking));
  const after = place.boxes();
  const isSeen = (id: string) => meanwhile.has(id) || after.includes(id);
  if (tries > 1 && sessions.some(({ id, state }) => state === "running" && !isSeen(id))) {
    return expectTruth(place, tries - 1);
  }
  for (const { id, state, why } of sessions) {
    if (state === "running") expect([...meanwhile, ...after], id).toContain(id);
    // Whoever removes a session may be killed at it, and nobody here stops a keeper: all else would be wrong.
    if (state === "stray") expect(why).toMatch(/its record is missing|It has no record/);
    else expect(["running", "starting", "ending", "ended", "died"], `${id} ${why}`).toContain(state);
  }
  // Who lived all the time is listed.
  const listed = sessions.map(({ id }) => id);
  for (const id of before.filter((one) => after.includes(one))) expect(listed).toContain(id);
}

/** Whether a `stop --all` that comes now knows of everybody: nobody can stop what has only just been typed. */
function isRecorded(place: EnginePlace): boolean {
  const keepers = namesIn(place.sessions).flatMap((id) => keeperIn(join(place.sessions, id, "record.json")));
  const starting = [...place.commands("run"), ...place.commands("keep")];
  return starting.every(({ pid, argv }) => !argv.includes("--detach") && keepers.includes(pid));
}

function keeperIn(file: string): readonly number[] {
  try {
    return [JSON.parse(readFileSync(file, "utf8")).keeper.pid];
  } catch {
    return [];
  }
}
