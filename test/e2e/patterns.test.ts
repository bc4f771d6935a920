import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { World } from "../world.ts";

const world = new World();
afterAll(() => rmSync(world.directory, { recursive: true }));

/** As many names as a large dependency tree has; those of a directory are of one file, which is soon made. */
function fill(directory: string, directories: number, names: number): void {
  const script = `import os, sys
os.chdir(sys.argv[1])
for outer in range(${directories}):
    os.mkdir(f"d{outer}"); there = os.open(f"d{outer}", os.O_RDONLY); open(f"d{outer}/one", "w").close()
    for inner in range(${names}): os.link("one", f"f{inner}", src_dir_fd=there, dst_dir_fd=there)
    os.close(there)`;
  const { status, stderr } = spawnSync("python3", ["-c", script, directory], { encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
}

describe("a project of a quarter of a million names", () => {
  test("can have its secrets hidden by a pattern", async () => {
    fill(world.project, 250, 1_000);
    world.file("home/project/d100/deep/.env.local", "secret\n");
    const script = "cat d100/deep/.env.local 2>/dev/null || echo hidden";
    expect(world.outside(script).stdout).toBe("secret\n");
    const { status, stdout, stderr } = await world.inside(script, "--network", "none", "--exclude", "**/.env*");
    expect({ status, stdout }).toEqual({ status: 0, stdout: "hidden\n" });
    // What the owner is told, if anything, is what takes so long.
    const told = `podbot: reading all names that ${JSON.stringify(join(world.project, "**/.env*"))} may stand for\n`;
    expect(stderr.replaceAll(told, "")).not.toContain("reading");
  });
});
