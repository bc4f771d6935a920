// @module-tag security
import { test } from "vitest";
import { becomeCaller, engine } from "./engines/engine.ts";
import { raceContainers } from "./race.ts";

const podman = engine("podman-rootless");
becomeCaller(podman);

test("while an agent of an ordinary user's exchanges names, the user's containers start as planned or not at all", async () => {
  await raceContainers(podman);
}, 1_200_000);
