import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { BuiltImage } from "../../src/image/build.ts";
import { program } from "../world.ts";
import { runWords } from "./agents/turn.ts";
import { engine, firstBuild } from "./engines/engine.ts";
import { imageCommand, imageWorld, tag } from "./image-command.ts";

const world = imageWorld();

/** The root that mmdebstrap has made for Podman, out of a container of it: Docker need not have another one made. */
async function rootOfPodman(): Promise<string> {
  const { engine: podman } = await firstBuild();
  const archive = join(world.directory, "root.tar");
  const [name = ""] = podman
    .cli("images", "--format", "{{.Repository}}:{{.Tag}}", "localhost/podbot-base")
    .stdout.split("\n");
  const container = podman.cli("create", "--network", "none", name, "true").stdout.trim();
  const { status, stderr } = podman.cli("export", "--output", archive, container);
  podman.cli("rm", container);
  if (status !== 0) throw new Error(stderr);
  return archive;
}

/** Words that run a command where mmdebstrap is a program that writes this root. */
function withRoot(archive: string, words: readonly string[]): readonly string[] {
  const maker = world.file("mmdebstrap", `#!/bin/sh\nexec cat ${archive}\n`, 0o755);
  const enter = 'mount --bind "$0" "$(command -v mmdebstrap)" && exec "$@"';
  return ["unshare", "--mount", "sh", "-c", enter, maker, ...words];
}

describe("an image that Docker builds", () => {
  test("is the same, and is up to date afterwards", async () => {
    const docker = engine("docker");
    const command = imageCommand(docker);
    const words = command("build", "--agents", "none", "--base", "debian");
    try {
      const building = withRoot(await rootOfPodman(), [process.execPath, program, ...words, "--json"]);
      const first = await runWords(building, world.env, "", world.project);
      expect({ status: first.status, stderr: first.status === 0 ? "" : first.stderr }).toEqual({
        status: 0,
        stderr: "",
      });
      expect(first.stderr).toContain("podbot: making a root of Debian\n");
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
    // Where nobody has built Podman's yet, it is waited for.
  }, 600_000);
});
