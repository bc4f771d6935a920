import { cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { program, type World } from "../world.ts";
import { namesIn, type Running } from "./machine.ts";

/** What a session of a round is, and what happens to it and when. */
export interface Fate {
  readonly detached: boolean;
  /** How long its agent works. */
  readonly seconds: number;
  /** Whom it hits: the first of these that there is. */
  readonly victims: readonly string[];
  readonly afterMs: number;
  readonly companion: "exec" | "stop" | null;
}

/** How many sessions there are at once. */
export const crowd = 5;

export function draw(pick: (below: number) => number, victims: readonly string[], widestMs: number): Fate {
  const names = [...victims];
  const order: string[] = [];
  while (names.length > 0) order.push(...names.splice(pick(names.length), 1));
  return {
    detached: pick(2) === 0,
    seconds: [0.1, 30, 30][pick(3)] as number,
    victims: order,
    afterMs: pick(widestMs),
    companion: ([null, null, null, "exec", "exec", "stop"] as const)[pick(6)] ?? null,
  };
}

/** Where sessions live and die. */
export interface Stage {
  readonly sessions: string;
  spawn(words: readonly string[], cwd: string): Running;
  /** Who was killed, or null. */
  murder(fate: Fate): string | null;
  /** How long a companion is let be before the murder. */
  companyMs(fate: Fate): number;
}

/** One session in a workspace of its own, its company, and at a random moment a murder. */
export async function live(stage: Stage, workspace: string, fate: Fate, commands: Running[]): Promise<string> {
  const podbot = (...words: string[]) => {
    const running = stage.spawn([process.execPath, program, ...words], workspace);
    commands.push(running);
    return running.exited;
  };
  const agent = ["sh", "-c", `echo begun >> work.txt; sleep ${fate.seconds}; echo done >> work.txt`];
  const start = () => podbot("run", ...(fate.detached ? ["--detach"] : []), "--agent", "custom", "--", ...agent);
  let ended = start();
  await wait(fate.afterMs);
  if (fate.companion === "stop") void podbot("stop", "--all", "--time", "1");
  const [id] = namesIn(stage.sessions);
  if (fate.companion === "exec" && id !== undefined) void podbot("exec", id, "--", "sleep", "30");
  if (fate.companion !== null) await wait(stage.companyMs(fate));
  for (let tries = 0; tries < 10; tries++) {
    // Nobody to be killed is there yet, or all is over already.
    for (let isOver = false; !isOver; isOver = await Promise.race([ended.then(() => true), wait(10, false)])) {
      const killed = stage.murder(fate);
      if (killed !== null) return killed;
    }
    // The same again, and sooner: a fast machine is done with a session before its moment.
    ended = start();
    await wait(fate.afterMs / 2 ** (tries + 1));
  }
  throw new Error("there was never anybody to be killed");
}

/** Copies of the project, one for each session of a crowd. */
export function workspacesOf({ home, project }: World): readonly string[] {
  return Array.from({ length: crowd }, (_, at) => {
    const workspace = join(home, `workspace-${at}`);
    cpSync(project, workspace, { recursive: true });
    writeFileSync(join(workspace, "work.txt"), "");
    return workspace;
  });
}
