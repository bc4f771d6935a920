import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { until } from "../../eventually.ts";
import { chance } from "../../faults/chance.ts";
import { crowd, draw, type Fate, live, type Stage, workspacesOf } from "../../faults/fate.ts";
import { expectWhole, kill, listing, namesIn, type Process, type Running } from "../../faults/machine.ts";
import { isThorough } from "../../faults/thorough.ts";
import type { TestEngine } from "../engines/engine.ts";
import { EnginePlace, isPodbot, isWarden, stopAll, wardenName } from "./machine.ts";

/** A round runs several sessions at once and kills a process for each. The moments are random, so a soak has more. */
const rounds = isThorough ? 8 : 3;

/** A kill comes within this time, which five sessions at once take from their start to their end. */
const widestMs = 2_500;

/** The processes that may be killed, recognized by what `/proc` shows. */
const victims: Readonly<Record<string, (process: Process, all: readonly Process[]) => boolean>> = {
  run: (process) => isPodbot(process, "run"),
  keep: (process) => isPodbot(process, "keep"),
  exec: (process) => isPodbot(process, "exec"),
  stop: (process) => isPodbot(process, "stop"),
  warden: isWarden,
  attendant: (process, all) => process.argv[0] === wardenName && !isWarden(process, all),
  agent: ({ argv }) => argv[0] === "sh" && argv[2]?.includes("work.txt") === true,
};

const kinds = Object.keys(victims);

/** Random fates, except that the first victim rotates through all kinds. */
function drawFates(pick: (below: number) => number, round: number): readonly Fate[] {
  return Array.from({ length: crowd }, (_, at) => {
    const fate = draw(pick, kinds, widestMs);
    const first = kinds[(round * crowd + at) % kinds.length] as string;
    return { ...fate, victims: [first, ...fate.victims.filter((kind) => kind !== first)] };
  });
}

/** Kills one process and returns its kind, or null if there is none. */
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

/** Kills random processes at random moments. */
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
      const tried = new Set<string | undefined>();
      for (let round = 0; round < rounds; round++) {
        const fates = drawFates(pick, round);
        for (const fate of fates) tried.add(fate.victims[0]);
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
          // Commands may fail, but not by a defect of Podbot.
          for (const { stderr } of outcomes) expect(stderr).not.toContain("defect");
        } catch (error) {
          throw new Error(
            `seed ${seed}, round ${round}: ${JSON.stringify(fates)}\nkilled ${killed.join(" ")}\n${(error as Error).stack}`,
            { cause: error },
          );
        }
      }
      expect(killed.length).toBe(rounds * crowd);
      expect([...tried].sort()).toEqual([...kinds].sort());
      // Which processes exist at a moment is random; only many rounds meet most kinds.
      if (isThorough) expect(new Set(killed).size).toBeGreaterThan(4);
    });
  });
}

/** An engine completes a request even if its caller was killed, so a container can appear after `stop --all`. */
async function stopLate(place: EnginePlace): Promise<void> {
  await place.podbot("stop", "--all", "--time", "1");
  await until("who is stopped ends", () => ["run", "keep"].every((name) => place.commands(name).length === 0));
}

/**
 * `ps` may call a session running only if its container existed at some time during `ps`. A container can start and end
 * between two looks, so a mismatch is checked again; a real error repeats.
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
    // A kill during removal leaves a session without a record. No test here stops a keeper, so other states are errors.
    if (state === "stray") expect(why).toMatch(/its record is missing|It has no record/);
    else expect(["running", "starting", "ending", "ended", "died"], `${id} ${why}`).toContain(state);
  }
  // A session whose container existed throughout is listed.
  const listed = sessions.map(({ id }) => id);
  for (const id of before.filter((one) => after.includes(one))) expect(listed).toContain(id);
}

/** Whether `stop --all` would know every session: a command that was just started has no record yet. */
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
