import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { until } from "../eventually.ts";
import { program } from "../world.ts";
import { chance } from "./chance.ts";
import { crowd, draw, type Fate, live, type Stage, workspacesOf } from "./fate.ts";
import { expectWhole, kill, listing, Machine, namesIn, type Process, type Running, stopAll } from "./machine.ts";
import { isThorough, patience } from "./thorough.ts";

/** Each machine has rounds of several sessions at once, and every session loses a process. */
const machines = 4;
const rounds = isThorough ? 15 : 4;
const killed: string[] = [];

/** As wide as a session here takes from its start to its end: who lives shorter is killed while it ends, or after. */
const widestMs = 700;

const isPodbot = ({ argv }: Process, command: string) => argv[1] === program && argv[2] === command;

/** Who may be killed, in words of what `/proc` shows. */
const victims: Readonly<Record<string, (process: Process, parents: ReadonlyMap<number, Process>) => boolean>> = {
  run: (process) => isPodbot(process, "run"),
  keep: (process) => isPodbot(process, "keep"),
  exec: (process) => isPodbot(process, "exec"),
  stop: (process) => isPodbot(process, "stop"),
  bwrap: ({ argv }) => argv[0] === "bwrap" || argv[0]?.endsWith("/podbot-launch") === true,
  warden: ({ argv, parent }, parents) => argv[0] === "/run/podbot/warden" && parents.get(parent)?.argv[0] === "bwrap",
  attendant: ({ argv, parent }, parents) =>
    argv[0] === "/run/podbot/warden" && parents.get(parent)?.argv[0] === "/run/podbot/warden",
  agent: ({ argv }) => argv[0] === "sh" && argv[2]?.includes("work.txt") === true,
};

/** Who was killed, or null. */
function murder(machine: Machine, fate: Fate, commands: readonly Running[]): string | null {
  const all = machine.processes(commands).filter(({ state }) => state !== "Z");
  const parents = new Map(all.map((process) => [process.pid, process]));
  for (const kind of fate.victims) {
    const found = all.find((process) => victims[kind]?.(process, parents));
    if (found !== undefined && kill(found.pid)) return kind;
  }
  return null;
}

function stageOf(machine: Machine, commands: readonly Running[]): Stage {
  return {
    sessions: machine.sessions,
    spawn: (words, cwd) => machine.spawn(words, cwd),
    murder: (fate) => murder(machine, fate, commands),
    companyMs: ({ afterMs }) => afterMs,
  };
}

test.concurrent.each(Array.from({ length: machines }, (_, at) => at))(
  "whoever is killed, and whenever, ps tells the truth and stop leaves a clean machine: %i",
  async (at) => {
    const seed = Number(process.env["FAULTS_SEED"] ?? Date.now() % 1_000_000) + at;
    const pick = chance(seed);
    const machine = await Machine.boot();
    machine.world.repository();
    const workspaces = workspacesOf(machine.world);
    const names = listing(workspaces[0] as string);
    const project = listing(machine.world.project);
    for (let round = 0; round < rounds; round++) {
      const fates = workspaces.map(() => draw(pick, Object.keys(victims), widestMs));
      const commands: Running[] = [];
      const stage = stageOf(machine, commands);
      try {
        const murders = fates.map((fate, number) => live(stage, workspaces[number] as string, fate, commands));
        killed.push(...(await Promise.all(murders)));
        await expectTruth(machine, commands);
        await until("who starts is recorded", () => isRecorded(machine, commands));
        await stopAll(machine, project);
        for (const workspace of workspaces) expectWhole(machine.world, workspace, names);
        const outcomes = await Promise.all(commands.map(({ done }) => done));
        // Whatever failed, failed for a reason that is said.
        for (const { stderr } of outcomes) expect(stderr).not.toContain("defect");
      } catch (error) {
        throw new Error(`seed ${seed}, round ${round}: ${JSON.stringify(fates)}\n${(error as Error).stack}`, {
          cause: error,
        });
      }
    }
  },
  patience * 300_000,
);

test("each round has had its kills, and all rounds have met most kinds of victims", () => {
  expect(killed.length).toBe(machines * rounds * crowd);
  expect(new Set(killed).size).toBeGreaterThan(5);
});

/**
 * A session is only said to run if its box is there at some time of the question: it may begin and end meanwhile, and
 * between two looks. Then the question is asked again: whoever errs errs again.
 */
async function expectTruth(machine: Machine, commands: readonly Running[], tries = 3): Promise<void> {
  const before = boxes(machine, commands);
  const meanwhile = new Set(before);
  const looking = setInterval(() => {
    for (const id of boxes(machine, commands)) meanwhile.add(id);
  }, 10);
  const sessions = await machine.ps().finally(() => clearInterval(looking));
  const after = boxes(machine, commands);
  const listed = sessions.map(({ id }) => id);
  const isSeen = (id: string) => meanwhile.has(id) || after.includes(id);
  const isDoubtful =
    sessions.some(({ id, state }) => state === "running" && !isSeen(id)) ||
    before.some((id) => after.includes(id) && !listed.includes(id));
  if (tries > 1 && isDoubtful) return expectTruth(machine, commands, tries - 1);
  for (const { id, state, why } of sessions) {
    if (state === "running") expect([...meanwhile, ...after], id).toContain(id);
    // Whoever removes a session may be killed at it, and nobody here stops a keeper: all else would be wrong.
    if (state === "stray") expect(why).toBe("its record is missing");
    else expect(["running", "starting", "ending", "ended", "died"], `${id} ${why}`).toContain(state);
  }
  // Who lived all the time is listed.
  for (const id of before.filter((one) => after.includes(one))) expect(listed).toContain(id);
}

/** Whether a `stop --all` that comes now knows of everybody: nobody can stop what has only just been typed. */
function isRecorded(machine: Machine, commands: readonly Running[]): boolean {
  const keepers = namesIn(machine.sessions).flatMap((id) => keeperIn(join(machine.sessions, id, "record.json")));
  const starting = machine
    .processes(commands)
    .filter((process) => process.state !== "Z" && (isPodbot(process, "run") || isPodbot(process, "keep")));
  return starting.every(({ pid, argv }) => !argv.includes("--detach") && keepers.includes(insideOf(pid)));
}

function keeperIn(file: string): readonly number[] {
  try {
    return [JSON.parse(readFileSync(file, "utf8")).keeper.pid];
  } catch {
    return [];
  }
}

/** The number that a process has in its machine. */
function insideOf(pid: number): number {
  try {
    return Number(/^NSpid:.*\t(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1]);
  } catch {
    return -1;
  }
}

function boxes(machine: Machine, commands: readonly Running[]): readonly string[] {
  const processes = machine.processes(commands).filter(({ argv, state }) => argv[0] === "bwrap" && state !== "Z");
  return processes.flatMap(({ argv }) => /\/in\/([a-z0-9]+)\.sock$/.exec(argv.at(-1) ?? "")?.[1] ?? []);
}
