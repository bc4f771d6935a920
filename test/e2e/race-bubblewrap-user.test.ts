// @module-tag security
import { join } from "node:path";
import { beforeAll, inject, test } from "vitest";
import { raceForEachKind } from "../race/race.ts";
import { newWorld } from "../world.ts";
import { ordinaryIds } from "./engines/user.ts";
import { startsForEachKind } from "./race.ts";

/** Each file of tests has a process of its own, which this one gives away for good. */
beforeAll(() => {
  const { uid, gid } = ordinaryIds();
  process.env["TMPDIR"] = join(inject("run").directory, "home");
  process.setgroups?.([gid]);
  process.setgid?.(gid);
  process.setuid?.(uid);
});

test("while an agent of an ordinary user's exchanges names, the user's boxes start as planned or not at all", async () => {
  await raceForEachKind(newWorld(), startsForEachKind);
});
