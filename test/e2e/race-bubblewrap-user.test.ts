// @module-tag security
import { join } from "node:path";
import { beforeAll, inject, test } from "vitest";
import { raceForEachKind } from "../race/race.ts";
import { accountOf } from "../suite/run.ts";
import { newWorld } from "../world.ts";
import { becomeCaller } from "./engines/engine.ts";
import { ordinaryIds } from "./engines/user.ts";
import { startsForEachKind } from "./race.ts";

beforeAll(() => {
  const home = join(inject("run").directory, "home");
  const caller = { ...ordinaryIds(), user: accountOf(inject("run")), home };
  becomeCaller({ caller, env: { TMPDIR: home } });
});

test("while an agent of an ordinary user's exchanges names, the user's boxes start as planned or not at all", async () => {
  await raceForEachKind(newWorld(), startsForEachKind);
}, 1_200_000);
