// @module-tag security
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { newWorld } from "../world.ts";
import { EngineWorld } from "./engine-box.ts";
import { becomeCaller, engine } from "./engines/engine.ts";

const podman = engine("podman-rootless");
beforeAll(() => becomeCaller(podman));

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

test("root of a rootless container gets nothing by giving one to another user", async () => {
  const world = new EngineWorld(podman);
  try {
    const secrets = join(world.project, "secrets");
    world.file("home/project/secrets/key", "the owner's\n");
    const given = (owner: string) => expect(podman.cli("unshare", "chown", owner, secrets).status).toBe(0);
    world.outside("chmod 700 secrets");
    given("1:1");
    for (const pattern of ["secrets/key", "**/key"]) {
      await expect(world.plan({ filesystem: { exclude: [pattern] } })).rejects.toMatchObject({
        code: "PATH_REFUSED",
        details: { path: secrets },
      });
    }
    expect((await world.plan()).plan.cwd).toBe(world.project);
    given("0:0");
    const { plan } = await world.plan({ filesystem: { exclude: ["**/key"] } });
    expect(JSON.stringify(plan)).toContain(join(secrets, "key"));
  } finally {
    world.remove();
  }
});
