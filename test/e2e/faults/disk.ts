import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { TestEngine } from "../engines/engine.ts";
import { type EnginePlace, expectClean, newPlace } from "./machine.ts";

/** Mounts the runtime directory on a disk of its own, for as long as the test takes. */
function onDisk({ world }: EnginePlace, options: string): Disposable {
  const run = join(world.directory, "run");
  execFileSync("mount", ["-t", "tmpfs", "-o", `mode=700,${options}`, "none", run]);
  // Without this directory Podbot would choose another runtime directory.
  mkdirSync(join(run, "podbot"), { mode: 0o700 });
  return { [Symbol.dispose]: () => execFileSync("umount", ["--lazy", run]) };
}

/** Starts on a full disk. Only Podbot itself writes there, so one engine is enough. */
export function disk(open: () => TestEngine): void {
  describe("a runtime directory", () => {
    // With each additional inode a later step of the start fails.
    const room = [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14].map((inodes) => `nr_inodes=${inodes}`);
    test.concurrent.each([...room, "size=4k", "size=8k", "size=16k"])(
      "that has no more room than %s means no start, or an ordinary one, and nothing is left",
      async (options) => {
        const { place, before } = newPlace(open());
        {
          using _disk = onDisk(place, options);
          const { status, stdout, stderr } = await place.podbot(
            "run",
            "--quiet",
            "--agent",
            "custom",
            "--",
            "echo",
            "ran",
          );
          expect(stderr).not.toContain("defect");
          if (status === 0) expect(stdout).toBe("ran\n");
          else
            expect({ status, stderr }).toMatchObject({
              status: 125,
              stderr: expect.stringMatching(/FILESYSTEM|RUNTIME_DIRECTORY/),
            });
          expect(await place.ps()).toEqual([]);
          expect(place.directories()).toEqual([]);
        }
        await expectClean(place, before);
      },
    );

    test.concurrent("that has room enough is what makes the difference", async () => {
      const { place, before } = newPlace(open());
      {
        using _disk = onDisk(place, "size=4m");
        const outcome = await place.podbot("run", "--quiet", "--agent", "custom", "--", "echo", "ran");
        expect(outcome).toMatchObject({ status: 0, stdout: "ran\n", stderr: "" });
      }
      await expectClean(place, before);
    });
  });
}
