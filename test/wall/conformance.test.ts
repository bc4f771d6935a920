// @module-tag security
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { planSandbox } from "../../src/keeper/sandbox.ts";
import { findBwrap, findNativePrograms } from "../../src/machine/programs.ts";
import { BubblewrapWall } from "../../src/wall/bubblewrap/wall.ts";
import { World } from "../world.ts";
import { conformance, type PlanOptions, type Site } from "./conformance.ts";

conformance("bubblewrap", async (): Promise<Site> => {
  const world = new World();
  const newWall = () =>
    new BubblewrapWall({
      bwrap: findBwrap(world.env["PATH"] as string),
      native: findNativePrograms(),
      heldDirectory: join(world.home, ".local/state/podbot/held"),
    });
  const plan = async ({ ro = [], exclude = [] }: PlanOptions = {}) => {
    const { plan } = await planSandbox({
      command: ["true"],
      session: true,
      cwd: world.project,
      env: world.env,
      config: { filesystem: { ro: [...ro], exclude: [...exclude] } },
    });
    return plan;
  };
  return {
    wall: newWall(),
    elsewhere: newWall(),
    workspace: world.project,
    plan,
    async impossiblePlan() {
      const path = join(world.project, "vanishes");
      writeFileSync(path, "");
      const impossible = await plan({ ro: [path] });
      rmSync(path);
      return impossible;
    },
    newDirectory() {
      mkdirSync(join(world.directory, "run"), { recursive: true });
      return mkdtempSync(join(world.directory, "run", "session-"));
    },
    sharesKernel: true,
    processWord: (id) => `/run/podbot/in/${id}.sock`,
    async [Symbol.asyncDispose]() {
      rmSync(world.directory, { recursive: true, force: true });
    },
  };
});
