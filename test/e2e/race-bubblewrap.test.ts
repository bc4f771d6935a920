// @module-tag security
import { test } from "vitest";
import { raceForEachKind } from "../race/race.ts";
import { newWorld } from "../world.ts";
import { startsForEachKind } from "./race.ts";

test("while an agent of root's exchanges names, root's boxes start as planned or not at all", async () => {
  await raceForEachKind(newWorld(), startsForEachKind);
}, 1_200_000);
