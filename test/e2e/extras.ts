import { mkdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PartialConfig } from "../../src/config/types.ts";
import { EngineWorld, openBox } from "./engine-box.ts";
import type { TestEngine } from "./engines/engine.ts";

type OwnEngine = TestEngine & AsyncDisposable;

/** What a Podman's own settings add to every container, and what becomes of it. */
export function extras(title: string, open: () => Promise<OwnEngine>, readsHome = false): void {
  describe(`settings of ${title}`, () => {
    let engine: OwnEngine;
    let plain: string;
    let world: EngineWorld;
    /** A directory of the host's that no plan names. */
    let private_: string;

    beforeAll(async () => {
      engine = await open();
      world = new EngineWorld(engine);
      private_ = join(world.home, "private");
      mkdirSync(private_);
      writeFileSync(join(private_, "key.pem"), "CANARY\n");
      plain = readFileSync(settingsOf(engine), "utf8");
    });
    afterAll(async () => {
      await engine?.[Symbol.asyncDispose]();
      world?.remove();
    });

    /** A service with more lines in `[containers]` of its containers.conf. */
    async function serveWith(...lines: readonly string[]): Promise<void> {
      writeFileSync(settingsOf(engine), plain.replace("[containers]\n", `[containers]\n${lines.join("\n")}\n`));
      await engine.kill();
      await engine.start();
    }
    const refusal = async (config: PartialConfig = {}) => {
      const error = await openBox(engine, config).then(
        (box) => box[Symbol.asyncDispose](),
        (reason: unknown) => reason,
      );
      expect(error).toMatchObject({ code: "GAP", hint: expect.stringContaining('accept_gaps = ["engine-extras"]') });
      return (error as Error).message;
    };

    test("that add directories and devices stop the start, unless the owner accepts it", async () => {
      await serveWith(`volumes = ["${private_}:/hostprivate"]`, 'devices = ["/dev/fuse:/dev/fuse:rwm"]');
      const found = await refusal();
      expect(found).toContain("engine-extras");
      expect(found).toContain("the mount /hostprivate");
      expect(found).toContain("the device /dev/fuse");
      expect(world.containers()).toEqual([]);
      await using box = await openBox(engine, { sandbox: { accept_gaps: ["engine-extras"] } });
      expect((await box.shell("cat /hostprivate/key.pem")).stdout).toBe("CANARY\n");
    });

    test("that make the kernel's settings writable stop the start", async () => {
      await serveWith('volumes = ["/sys/fs/cgroup:/sys/fs/cgroup:rw"]');
      expect(await refusal()).toContain("the mount /sys/fs/cgroup");
      await serveWith('volumes = ["/sys:/sys:rw"]');
      expect(await refusal()).toContain("the mount /sys");
    });

    test("that leave the engine's own filter out stop the start", async () => {
      await serveWith('seccomp_profile = "unconfined"');
      expect(await refusal()).toContain("calls that the engine's own filter would have denied");
    });

    test("that share the host's namespaces have no effect", async () => {
      await serveWith('pidns = "host"', 'ipcns = "host"', 'utsns = "host"', 'cgroupns = "host"', "init = true");
      await using box = await openBox(engine);
      const kinds = ["pid", "ipc", "uts", "cgroup"];
      const { stdout } = await box.shell(`for each in ${kinds.join(" ")}; do readlink /proc/self/ns/$each; done`);
      const said = stdout.trim().split("\n");
      expect(said.map((line) => line.split(":")[0])).toEqual(kinds);
      for (const [at, kind] of kinds.entries()) expect(said[at]).not.toBe(readlinkSync(`/proc/self/ns/${kind}`));
      expect((await box.shell("hostname; tr '\\0' ' ' </proc/1/cmdline")).stdout).toContain(
        "podbot\n/run/podbot/warden",
      );
    });

    // Root's Podman reads it in places that all of the machine share.
    if (readsHome)
      test("that put files of the host's at /run/secrets have no effect", async () => {
        await serveWith();
        const directory = join(engine.caller.home, ".config/containers");
        mkdirSync(directory, { recursive: true });
        try {
          writeFileSync(join(directory, "mounts.conf"), `${private_}:/run/secrets\n`);
          expect(bare(engine, "cat /run/secrets/key.pem")).toBe("CANARY\n");
          await using box = await openBox(engine);
          expect((await box.shell("ls -A /run/secrets")).stdout).toBe("");
        } finally {
          rmSync(join(directory, "mounts.conf"));
        }
      });

    test("that set variables have no effect, unless the owner accepts it", async () => {
      await serveWith('env = ["CONF_ENV=leak"]');
      const look = "echo ${CONF_ENV-unset} ${TERM:+terminal} ${container:+container} $HOME";
      expect(bare(engine, look)).toMatch(/^leak /);
      {
        await using box = await openBox(engine);
        expect((await box.shell(look)).stdout).toBe("unset terminal container /root\n");
      }
      await using box = await openBox(engine, { sandbox: { accept_gaps: ["engine-extras"] } });
      expect((await box.shell(look)).stdout).toMatch(/^leak /);
    });

    test("that are usual stop nothing, also where the root is read-only", async () => {
      await serveWith('tz = "Europe/Berlin"', "no_hosts = true");
      for (const read_only_root of [false, true]) {
        await using box = await openBox(engine, { sandbox: { read_only_root } });
        expect((await box.shell("cat /etc/hosts")).stdout).toMatch(/^127\.0\.0\.1 localhost/);
      }
    });
  });
}

function settingsOf({ env }: TestEngine): string {
  return env["CONTAINERS_CONF"] as string;
}

/** What a container of the engine's own making has. */
function bare(engine: TestEngine, script: string): string {
  const limits = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"];
  return engine.cli("run", "--rm", "--network", "none", ...limits, engine.image, "sh", "-c", script).stdout;
}
