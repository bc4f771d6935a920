// @module-tag security
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { newWorld } from "../world.ts";
import { beginRace, danglingLink, raced, surprise } from "./race.ts";

const built = newWorld();
const racer = join(built.directory, "racer");
beforeAll(() => {
  const source = join(import.meta.dirname, "racer.c");
  execFileSync("cc", ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-static", "-o", racer, source]);
});

/** The long form is test/e2e/race.test.ts. */
const startsEach = 3;

describe("while an agent exchanges names around it, a box behind bubblewrap starts as planned or not at all", () => {
  test("and nothing elsewhere is made, changed or removed", async () => {
    const world = newWorld();
    using race = await beginRace(world, racer);
    const before = race.victim();
    const outcomes: string[] = [];
    for (const [at, name] of raced.entries()) {
      race.turn(at + 1, 0);
      for (let start = 0; start < startsEach; start++) {
        const outcome = await race.start();
        outcomes.push(outcome.status === 0 ? "as planned" : "not at all");
        expect({ name, surprise: surprise(outcome), victim: race.victim() }).toEqual({
          name,
          surprise: null,
          victim: before,
        });
      }
    }
    expect(new Set(outcomes)).toEqual(new Set(["as planned", "not at all"]));
    race.turn(0, 0);
    expect(await race.start()).toMatchObject({ status: 0 });
  });

  test("where bubblewrap looks up the targets itself, the same agent makes files elsewhere", async () => {
    const world = newWorld();
    world.file("home/.config/podbot/config.toml", 'sandbox.accept_gaps = ["mounts-by-path"]\n');
    world.file("bin/bwrap", '#!/bin/sh\nsleep 0.01\nexec /usr/bin/bwrap "$@"\n', 0o755);
    world.env["PATH"] = `${join(world.directory, "bin")}:${world.env["PATH"]}`;
    using race = await beginRace(world, racer);
    const before = race.victim();
    race.turn(raced.indexOf(".mcp.json") + 1, danglingLink);
    let starts = 0;
    while (race.victim() === before && starts < 300) {
      await race.start();
      starts++;
    }
    expect(race.victim()).not.toBe(before);
  });
});
