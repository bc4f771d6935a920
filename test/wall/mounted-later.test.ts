// @module-tag security
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { asRoot } from "../native/programs.ts";
import { newWorld, program, type World } from "../world.ts";

/** On most machines systemd has made every mount shared: what is mounted later then appears in copies as well. */
function onSharedMounts(world: World, script: string): string {
  const words = [...asRoot, "--mount", "--propagation", "shared", "bash", "--norc", "-euc", script];
  const { stdout, stderr, status } = spawnSync("unshare", words, {
    cwd: world.project,
    env: world.env as NodeJS.ProcessEnv,
    encoding: "utf8",
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return stdout;
}

/** Runs something in a box, and mounts something of the host's meanwhile. */
function meanwhile(world: World, inside: string, mounting: string, flags = ""): string {
  const box = `touch begun; while [ ! -e mounted ]; do sleep 0.02; done; ${inside}`;
  return onSharedMounts(
    world,
    `"${process.execPath}" "${program}" sandbox --quiet --network none ${flags} -- sh -c '${box}' & box=$!
     for turn in $(seq 500); do [ -e begun ] && break; sleep 0.02; done
     ${mounting}
     touch mounted; wait $box`,
  );
}

function prepared(): World {
  const world = newWorld();
  mkdirSync(join(world.home, "vault", "hidden"), { recursive: true });
  return world;
}

const mountVault = (world: World) =>
  `mount -t tmpfs none "${world.home}/vault"; echo secret >"${world.home}/vault/key"
   mkdir -p "${world.home}/vault/hidden"; echo secret >"${world.home}/vault/hidden/key"`;

describe("what the host mounts while a box runs", () => {
  test.each(["", "--exclude ~/vault/hidden", "--root minimal --ro ~/vault"])("does not appear inside: %s", (flags) => {
    const world = prepared();
    const look = `cat ~/vault/key ~/vault/hidden/key 2>/dev/null; touch ~/vault/written 2>/dev/null; true`;
    expect(meanwhile(world, look, mountVault(world), flags)).toBe("");
  });

  test("appears in a copy of the mounts that follows the host's, as a control", () => {
    const world = prepared();
    const wait = "while [ ! -e mounted ]; do sleep 0.02; done";
    const said = onSharedMounts(
      world,
      `unshare --mount --propagation slave sh -c '${wait}; cat ~/vault/key' & follower=$!
       ${mountVault(world)}
       touch mounted; wait $follower`,
    );
    expect(said).toBe("secret\n");
  });

  test("can be unmounted by the owner, though the box has been given it", () => {
    const world = prepared();
    const script = `${mountVault(world)}
      touch mounted
      "${process.execPath}" "${program}" sandbox --quiet --network none --ro ~/vault -- sh -c '
        touch begun; while [ ! -e unmounted ]; do sleep 0.02; done; cat ~/vault/key' & box=$!
      for turn in $(seq 500); do [ -e begun ] && break; sleep 0.02; done
      umount "${world.home}/vault"
      touch unmounted; wait $box`;
    expect(onSharedMounts(world, script)).toBe("secret\n");
  });
});
