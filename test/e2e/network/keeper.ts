import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { SessionRecord } from "../../../src/registry/record.ts";
import { eventually } from "../../eventually.ts";
import { program } from "../../world.ts";
import { runWords } from "../agents/turn.ts";
import { EngineWorld } from "../engine-box.ts";
import type { TestEngine } from "../engines/engine.ts";
import { configOf, openNetworkWorld, openTown } from "./box.ts";

/** Whoever answers at the doors is gone at once: so is the network, and no other takes its place. */
export function killsKeeper(open: () => Promise<TestEngine | null>): void {
  test("is gone when its keeper is killed: nothing gets out, by no other way", async () => {
    const engine = await open();
    await using town = await openTown();
    const { world, keyFile } = openNetworkWorld(engine, town);
    world.file(join(world.home, ".config/podbot/config.json"), JSON.stringify(configOf(town, keyFile)));
    const podbot = (...words: readonly string[]) =>
      runWords([process.execPath, program, ...words], { ...world.env, ...engine?.env }, "", world.project);
    const place = engine === null ? [] : ["--image", engine.image, "--engine-socket", engine.socket];
    // Not of the agent's own process group, nor its child: whoever ends the agent need not end this.
    const loop = "while :; do python3 probe.py once >>seen.txt 2>&1; sleep 0.1; done";
    const script = `setsid sh -c '(${loop}) &' </dev/null >/dev/null 2>&1; exec sleep 300`;
    try {
      const words = ["run", "--detach", "--quiet", "--agent", "custom", ...place, "--", "sh", "-c", script];
      const started = await podbot(...words);
      expect(started).toMatchObject({ status: 0, stderr: "" });
      const id = started.stdout.trim();
      const lines = () => readFileSync(join(world.project, "seen.txt"), "utf8").split("\n").slice(0, -1);
      await eventually(() => expect(lines().length).toBeGreaterThan(1));
      expect(new Set(lines())).toEqual(new Set(["HTTP/1.1 200 OK; HTTP/1.1 200 OK; HTTP/1.1 403 Forbidden"]));
      const { keeper } = JSON.parse(
        readFileSync(join(world.home, ".local/state/podbot/sessions", id, "record.json"), "utf8"),
      ) as SessionRecord;
      process.kill(keeper.pid, "SIGKILL");
      await eventually(() => expect(() => process.kill(keeper.pid, 0)).toThrow("ESRCH"));
      const [before, told] = [lines().length, town.heard.length];
      // The box ends with its keeper, or goes on without a network.
      for (let [count, silent] = [before, 0]; silent < 20 && lines().length < before + 5; await sleep(100)) {
        [count, silent] = [lines().length, lines().length === count ? silent + 1 : 0];
      }
      const after = lines().slice(before + 1);
      expect(after.filter((line) => line.includes("HTTP/"))).toEqual([]);
      expect(town.heard.length - told).toBeLessThanOrEqual(2);
      expect((await podbot("stop", "--all", "--time", "1ms")).status).toBe(0);
    } finally {
      await podbot("stop", "--all", "--time", "1ms");
      if (world instanceof EngineWorld) {
        await eventually(() => expect(world.containers()).toEqual([]));
        world.remove();
      } else rmSync(world.directory, { recursive: true, force: true });
    }
  });
}
