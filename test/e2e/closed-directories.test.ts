// @module-tag security
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, inject, test } from "vitest";
import { accountOf } from "../suite/run.ts";
import { newWorld } from "../world.ts";
import { becomeCaller } from "./engines/engine.ts";
import { ordinaryIds } from "./engines/user.ts";

beforeAll(() => {
  const home = join(inject("run").directory, "home");
  becomeCaller({ caller: { ...ordinaryIds(), user: accountOf(inject("run")), home }, env: { TMPDIR: home } });
});

// Root passes everywhere, so only another user's box can be deceived in this way.
test("an agent that closes a directory in one run gets nothing by opening it in the next", async () => {
  const world = newWorld().repository();
  world.file("home/project/secrets/key", "the owner's\n");
  world.git("init", "-q", "--bare", ".git/modules/m");
  mkdirSync(join(world.project, ".git/modules/m/hooks"), { recursive: true });
  const steal = "chmod 700 secrets .git/modules/m; cat secrets/key; echo evil >.git/modules/m/hooks/pre-commit";
  const run = (script: string) => world.inside(script, "--exclude", "secrets/key", "--exclude", "**/key");

  for (const closed of ["secrets", ".git/modules/m"]) {
    expect((await run(`chmod 000 ${closed}`)).status).toBe(0);
    const next = await run(steal);
    expect(next).toMatchObject({ status: 2, stdout: "", stderr: expect.stringContaining("(PATH_REFUSED") });
    expect(next.stderr).toContain(`chmod u+rwx ${join(world.project, closed)}`);
    world.outside(`chmod u+rwx ${closed}`);
    expect((await run(steal)).stdout).toBe("");
  }
  expect(existsSync(join(world.project, ".git/modules/m/hooks/pre-commit"))).toBe(false);
  expect(world.outside(steal).stdout).toBe("the owner's\n");
  expect(existsSync(join(world.project, ".git/modules/m/hooks/pre-commit"))).toBe(true);
});
