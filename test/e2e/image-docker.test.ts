import { describe, expect, test } from "vitest";
import type { BuiltImage } from "../../src/image/build.ts";
import { engine } from "./engines/engine.ts";
import { imageCommand, imageWorld, tag } from "./image-command.ts";

const world = imageWorld();

describe("an image that Docker builds", () => {
  test("is the same, and is up to date afterwards", async () => {
    const docker = engine("docker");
    const command = imageCommand(docker);
    const words = command("build", "--agents", "none", "--base", "debian");
    try {
      const first = await world.podbot([...words, "--json"]);
      expect({ status: first.status, stderr: first.status === 0 ? "" : first.stderr }).toEqual({
        status: 0,
        stderr: "",
      });
      const built = JSON.parse(first.stdout) as BuiltImage;
      expect(built).toMatchObject({ upToDate: false, agents: {}, software: { podman: expect.any(String) } });
      const second = await world.podbot(words);
      expect([second.status, second.stdout.slice(0, 11)]).toEqual([0, "up to date:"]);
      const run = docker.cli("run", "--rm", "--network", "none", tag, "sh", "-c", "node --version && npm --version");
      expect(run).toMatchObject({ status: 0, stdout: expect.stringMatching(/^v20\./) });
      expect(docker.cli("ps", "--all", "--quiet", "--filter", `ancestor=${tag}`).stdout).toBe("");
    } finally {
      docker.cli("rmi", "--force", tag);
    }
  });
});
