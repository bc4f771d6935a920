// @module-tag security
import { test } from "vitest";
import { engine } from "./engines/engine.ts";
import { raceContainers } from "./race.ts";

test("while an agent of root's exchanges names, root's containers start as planned or not at all", async () => {
  await raceContainers(engine("docker"));
}, 1_200_000);
