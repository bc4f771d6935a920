import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { PartialConfig } from "../../src/config/types.ts";
import { connectEngine } from "../../src/engine/client.ts";
import { planSandbox } from "../../src/keeper/sandbox.ts";
import { findNativePrograms } from "../../src/machine/programs.ts";
import { EngineWall } from "../../src/wall/engine/wall.ts";
import type { PlanOptions, Site } from "../wall/conformance.ts";
import { World } from "../world.ts";
import { networkWords, type TestEngine } from "./engines/engine.ts";

/** A place to work in, and the wall of an engine around it. */
export async function openEngineSite(engine: TestEngine, more: PartialConfig = {}): Promise<Site> {
  const world = new World();
  const owner = world.directory.replaceAll(/[^a-zA-Z0-9]/g, "-");
  const client = connectEngine({ kind: "unix", path: engine.socket });
  const heldDirectory = join(world.home, ".local/state/podbot/held");
  const newWall = () => new EngineWall({ client, native: findNativePrograms(), heldDirectory, owner });
  const plan = async ({ ro = [], exclude = [] }: PlanOptions = {}) => {
    const planned = await planSandbox({
      command: ["true"],
      session: true,
      cwd: world.project,
      env: { ...world.env, ...engine.env, ...networkWords(engine) },
      config: {
        ...more,
        image: engine.image,
        engine_socket: engine.socket,
        filesystem: { ro: [...ro], exclude: [...exclude] },
      },
    });
    return planned.plan;
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
      mkdirSync(join(world.directory, "run"), { recursive: true, mode: 0o700 });
      return mkdtempSync(join(world.directory, "run", "session-"));
    },
    sharesKernel: engine.runtime !== "runsc",
    processWord: (id) => `/run/podbot/in/${id}.sock`,
    async [Symbol.asyncDispose]() {
      client[Symbol.dispose]();
      rmSync(world.directory, { recursive: true, force: true });
    },
  };
}
