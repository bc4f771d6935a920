import { raceForEachKind } from "../race/race.ts";
import { newWorld } from "../world.ts";
import type { TestEngine } from "./engines/engine.ts";

/** At least 500 starts for each kind of operation, as bubblewrap starts fast enough for that. */
export const startsForEachKind = Number(process.env["PODBOT_RACE_STARTS"] ?? 500);

/** A container takes ten times as long to start: 525 starts, each with operations of every kind. */
const containersForEachKind = Math.ceil(startsForEachKind / 7) + 3;

export async function raceContainers(engine: TestEngine): Promise<void> {
  const world = newWorld();
  Object.assign(world.env, engine.env);
  await raceForEachKind(world, containersForEachKind, ["--image", engine.image, "--engine-socket", engine.socket]);
}
