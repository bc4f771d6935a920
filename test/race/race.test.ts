// @module-tag security
import { closeSync, existsSync, openSync, readdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { planSandbox } from "../../src/keeper/sandbox.ts";
import { findNativePrograms } from "../../src/machine/programs.ts";
import { BubblewrapWall } from "../../src/wall/bubblewrap/wall.ts";
import { newWorld } from "../world.ts";
import { raceForEachKind } from "./race.ts";

// The long form is test/e2e/race-bubblewrap.test.ts.
test("while an agent exchanges names around it, a box starts as planned or not at all, and nothing changes elsewhere", async () => {
  await raceForEachKind(newWorld(), 6);
});

describe("a protected file that is exchanged for a link in the last moment before bubblewrap starts", () => {
  /** What lies, in the end, where the link leads to. */
  async function exchanged(...acceptGaps: readonly string[]): Promise<readonly string[]> {
    const world = newWorld();
    const at = (name: string) => join(world.directory, name);
    const file = world.file("home/project/.mcp.json", "{}\n");
    world.file("home/victim/file");
    const wait = `touch ${at("built")}; while [ ! -e ${at("exchanged")} ]; do sleep 0.01; done`;
    const bwrap = world.file("bin/bwrap", `#!/bin/sh\n${wait}\nexec /usr/bin/bwrap "$@"\n`, 0o755);
    const wall = new BubblewrapWall({ bwrap, native: findNativePrograms(), heldDirectory: at("held") });
    const config = { sandbox: { accept_gaps: [...acceptGaps] } };
    const { plan } = await planSandbox({ command: ["true"], cwd: world.project, env: world.env, config });
    const stdio = [openSync("/dev/null", "r"), openSync(at("said"), "w"), openSync(at("said"), "a")] as const;
    const ended = wall.run(plan, { env: {} }, stdio).finally(() => stdio.forEach(closeSync));
    await Promise.all([
      expect(ended).rejects.toMatchObject({ code: expect.stringMatching(/^(PATH_CHANGED|WALL_FAILED)$/) }),
      vi
        .waitUntil(() => existsSync(at("built")))
        .then(() => {
          renameSync(file, `${file}.moved`);
          symlinkSync(`/oldroot${world.home}/victim/made`, file);
          writeFileSync(at("exchanged"), "");
        }),
    ]);
    return readdirSync(join(world.home, "victim"));
  }

  test("is seen inside, before anything runs", async () => {
    expect(await exchanged()).toEqual(["file"]);
  });

  test("leads bubblewrap 0.8 elsewhere where the owner lets it mount by path", async () => {
    expect(await exchanged("mounts-by-path")).toEqual(["file", "made"]);
  });
});
