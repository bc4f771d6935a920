// @module-tag security
import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { planSandbox } from "../../src/keeper/sandbox.ts";
import { findNativePrograms } from "../../src/machine/programs.ts";
import { BubblewrapWall } from "../../src/wall/bubblewrap/wall.ts";
import { until } from "../eventually.ts";
import { newWorld, type World } from "../world.ts";
import { raceForEachKind } from "./race.ts";

// The long form is test/e2e/race-bubblewrap.test.ts.
test("while an agent exchanges names around it, a box starts as planned or not at all, and nothing changes elsewhere", async () => {
  await raceForEachKind(newWorld(), 6);
});

interface Interruption {
  readonly acceptGaps?: readonly string[];
  readonly exclude?: readonly string[];
  /** What happens in the moment in which the mounts have been built and bubblewrap has not begun. */
  readonly meanwhile: (file: string, world: World) => void;
}

/** Runs a command beside a file whose name is exchanged once, in the last moment. */
async function interrupted({ acceptGaps = [], exclude = [], meanwhile }: Interruption) {
  const world = newWorld();
  const at = (name: string) => join(world.directory, name);
  const file = world.file("home/project/.mcp.json", "{}\n");
  world.file("home/victim/file");
  const wait = `touch ${at("built")}; while [ ! -e ${at("exchanged")} ]; do sleep 0.01; done`;
  const bwrap = world.file("bin/bwrap", `#!/bin/sh\n${wait}\nexec /usr/bin/bwrap "$@"\n`, 0o755);
  const wall = new BubblewrapWall({ bwrap, native: findNativePrograms(), heldDirectory: at("held") });
  const config = { sandbox: { accept_gaps: [...acceptGaps] }, filesystem: { exclude: [...exclude] } };
  const { plan } = await planSandbox({ command: ["cat", file], cwd: world.project, env: world.env, config });
  const stdio = [openSync("/dev/null", "r"), openSync(at("said"), "w"), openSync(at("said"), "a")] as const;
  const ended = wall.run(plan, { env: { PATH: "/usr/bin:/bin" } }, stdio).finally(() => stdio.forEach(closeSync));
  ended.catch(() => {});
  await until("the mounts are built", () => existsSync(at("built")));
  meanwhile(file, world);
  writeFileSync(at("exchanged"), "");
  return { ended, said: () => readFileSync(at("said"), "utf8"), victim: () => readdirSync(join(world.home, "victim")) };
}

describe("a protected file that is exchanged for a link in the last moment before bubblewrap starts", () => {
  const meanwhile = (file: string, { home }: World) => {
    renameSync(file, `${file}.moved`);
    symlinkSync(`/oldroot${home}/victim/made`, file);
  };

  test("is seen inside, before anything runs", async () => {
    const { ended, victim } = await interrupted({ meanwhile });
    await expect(ended).rejects.toMatchObject({ code: "PATH_CHANGED" });
    expect(victim()).toEqual(["file"]);
  });

  test("leads bubblewrap 0.8 elsewhere where the owner lets it mount by path", async () => {
    const { ended, victim } = await interrupted({ meanwhile, acceptGaps: ["mounts-by-path"] });
    await expect(ended).rejects.toThrow();
    expect(victim()).toEqual(["file", "made"]);
  });
});

test("a hidden file that a program writes anew in that moment, and renames into place, is hidden all the same", async () => {
  const meanwhile = (file: string) => {
    writeFileSync(`${file}.new`, "SECRET");
    renameSync(`${file}.new`, file);
  };
  const { ended, said } = await interrupted({ meanwhile, exclude: [".mcp.json"] });
  expect(await ended).toMatchObject({ code: 1 });
  expect(said()).toContain("Permission denied");
});
