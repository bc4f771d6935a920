import { describe, expect, test } from "vitest";
import { startSession } from "../../src/keeper/kept-session.ts";
import { stopSessions } from "../../src/keeper/sessions.ts";
import { until } from "../eventually.ts";
import { doors, openGuardedContainer } from "./doors.ts";
import { EngineWorld } from "./engine-box.ts";
import { becomeCaller, engine } from "./engines/engine.ts";

const docker = engine("docker-group");
becomeCaller(docker);
doors("a Docker that is root's, for an ordinary user", async () => docker, { hasIpv6: false, canEnter: false });

describe("the helper that opens them", () => {
  test("is gone as soon as they are there", async () => {
    await using made = await openGuardedContainer(docker);
    const names = () => docker.cli("ps", "--all", "--format", "{{.Names}}").stdout.split("\n");
    expect(names()).toContain(`podbot-${made.id}`);
    // It has ended by then; the engine removes it a moment later.
    await until("the engine has removed it", () => !names().includes(`podbot-${made.id}-doors`));
  });

  test("is removed with the next sweep where nobody was left to start it, and only there", async () => {
    const world = new EngineWorld(docker);
    try {
      const planned = await world.plan();
      await using session = await startSession(planned);
      const leave = (id: string) => {
        const labels = ["--label", `podbot.owner=${world.owner}`, "--label", `podbot.session=${id}`];
        const words = ["create", "--name", `podbot-${id}-doors`, ...labels, docker.image, "true"];
        expect(docker.cli(...words)).toMatchObject({ status: 0 });
      };
      // The name of its own helper is free when the engine has removed that.
      await until("the engine has removed it", () => !world.containers().includes(`podbot-${session.id}-doors`));
      leave("lonely");
      leave(session.id);
      await stopSessions({ ...world.env, ...docker.env }, "ended", 0);
      expect(world.containers().toSorted()).toEqual([`podbot-${session.id}`, `podbot-${session.id}-doors`]);
      await session.stop();
    } finally {
      for (const name of world.containers()) docker.cli("rm", "--force", name);
      world.remove();
    }
  });
});
