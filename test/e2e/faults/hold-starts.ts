import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { EnginePlace } from "./machine.ts";

/**
 * Restarts the test's own Docker with a runtime whose `start` does not return until `letGo`. The container runs
 * meanwhile, and Docker does not know it yet.
 */
export async function holdStarts({ engine, world }: EnginePlace): Promise<Disposable & { letGo(): void }> {
  const hold = world.file("hold");
  const script = `runc "$@" && case " $* " in *" start "*) while [ -e ${hold} ]; do sleep 0.05; done ;; esac`;
  const path = world.file("holding-runc", `#!/bin/sh\n${script}\n`, 0o755);
  const file = join(dirname(engine.socket), "daemon.json");
  const settings = readFileSync(file, "utf8");
  writeFileSync(file, JSON.stringify({ ...JSON.parse(settings), runtimes: { holding: { path } } }));
  // Podbot opens doors only with a runtime it knows, so the network is off.
  Object.assign(world.env, { PODBOT_SANDBOX_RUNTIME: "holding", PODBOT_NETWORK_MODE: "none" });
  await engine.kill();
  await engine.start();
  const letGo = () => rmSync(hold, { force: true });
  return {
    letGo,
    [Symbol.dispose]() {
      letGo();
      writeFileSync(file, settings);
    },
  };
}
