import { chmodSync, chownSync, lstatSync, mkdirSync, mkdtempSync, renameSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { EngineWorld } from "./engine-box.ts";
import { becomeCaller, engine } from "./engines/engine.ts";
import { podbot } from "./shipped.ts";

const podman = engine("podman-rootless");
/** A group of the host that the user namespace of the container does not know. */
const group = 64_321;

describe("a session of rootless Podman in a directory that the caller shares with a group", () => {
  let world: EngineWorld;

  beforeAll(() => {
    // Only root can make the caller's files another group's, so this comes before the worker becomes the caller.
    const shared = join(mkdtempSync(join(tmpdir(), "shared-")), "shared");
    mkdirSync(shared);
    const files = { f: 0o664, sg: 0o2755, roots: 0o644 };
    for (const [name, mode] of Object.entries(files)) {
      writeFileSync(join(shared, name), "");
      if (name !== "roots") chownSync(join(shared, name), podman.caller.uid, group);
      chmodSync(join(shared, name), mode);
    }
    chownSync(shared, podman.caller.uid, group);
    chmodSync(shared, 0o2775);
    chownSync(join(shared, ".."), podman.caller.uid, podman.caller.gid);
    becomeCaller(podman);
    world = new EngineWorld(podman);
    renameSync(shared, join(world.project, "shared"));
  });
  afterAll(() => world?.remove());

  test("leaves owners, groups and modes as they were, says nothing, and takes back what others inside made", async () => {
    const { uid, gid } = podman.caller;
    const script = "echo x >shared/new; touch other nobody; chown 1234:1234 other; chown 65534:65534 nobody";
    const words = ["--image", podman.image, "--engine-socket", podman.socket, "--", "sh", "-c", script];
    const { status, stderr } = await podbot(world, ["run", "--agent", "custom", ...words]);
    expect({ status, warned: stderr.includes("may belong to a user of the container") }).toEqual({
      status: 0,
      warned: false,
    });
    const found = ["shared", "shared/f", "shared/sg", "shared/roots", "shared/new", "other", "nobody"].map((name) => {
      const stats = lstatSync(join(world.project, name));
      return `${name} ${stats.uid}:${stats.gid} ${(stats.mode & 0o7777).toString(8)}`;
    });
    expect(found).toEqual([
      `shared ${uid}:${group} 2775`,
      `shared/f ${uid}:${group} 664`,
      `shared/sg ${uid}:${group} 2755`,
      "shared/roots 0:0 644",
      `shared/new ${uid}:${group} 644`,
      `other ${uid}:${gid} 644`,
      `nobody ${uid}:${gid} 644`,
    ]);
  });
});
