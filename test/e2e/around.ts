import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { startSession } from "../../src/keeper/kept-session.ts";
import { findNativePrograms } from "../../src/machine/programs.ts";
import { openSandbox } from "../../src/sandbox/open.ts";
import { type Doors, openDoors } from "../../src/wall/doors.ts";
import { eventually } from "../eventually.ts";
import { answer, dialling } from "../native/guarded-box.ts";
import { newId } from "../wall/conformance.ts";
import { startDecoys } from "./decoy.ts";
import { EngineWorld, openBox } from "./engine-box.ts";
import { openEngineSite } from "./engine-site.ts";
import { call } from "./engines/api.ts";
import type { TestEngine } from "./engines/engine.ts";
import { podbot } from "./shipped.ts";

const nobody = 65_534;

/** What lies around a box: whom Podbot takes for it, when it ends, and what the engine adds to it. */
export function surroundings(title: string, engine: TestEngine): void {
  const isDocker = engine.name.startsWith("docker");

  describe(`around a box of ${title}`, () => {
    const own = process.getuid?.() === 0 && engine.caller.uid === 0 ? 0 : engine.caller.uid;
    test.each(own === 0 ? [own, nobody] : [own])(
      "another process of user %i with the same arguments is not taken for it",
      async (uid) => {
        await using site = await openEngineSite(engine, { network: { mode: "allowlist", domains: ["example.com"] } });
        const id = newId();
        const directory = site.newDirectory();
        const decoys = startDecoys.bind(null, site.processWord(id), site.workspace, uid);
        let racing: Awaited<ReturnType<typeof decoys>> | undefined;
        const furnish = async () => {
          racing = await decoys();
        };
        const env = { PATH: "/usr/local/bin:/usr/bin:/bin", LANG: "C.UTF-8", HOME: "/tmp" };
        const box = await site.wall.start(await site.plan(), { id, directory, env, furnish });
        try {
          answer(box.doors as Doors);
          const dial = `${dialling}\ndial("203.0.113.7", 443)`;
          const running = await openSandbox(box).exec({ argv: ["python3", "-c", dial], timeoutMs: 60_000 });
          running.stdin.end();
          expect(await text(running.stdout)).toContain("203.0.113.7 443 door");
          expect(await racing?.found).toBe("");
          // They would have found them.
          const control = await decoys(0.01);
          await using doors = await openDoors(findNativePrograms(), { pid: control.first }, [443]);
          answer(doors);
          expect(await control.found).toBe("port 443 answers\n");
        } finally {
          await box[Symbol.asyncDispose]();
        }
        expect(box.isThere()).toBe(false);
      },
    );

    test("a stopped attendant does not keep it alive without its keeper", async () => {
      const world = new EngineWorld(engine);
      try {
        // When it is known to have started.
        const hold = "sleep 0.5; kill -STOP $PPID; echo stopped >stopped; exec sleep 300";
        const words = ["run", "--detach", "--quiet", "--agent", "custom", "--image", engine.image];
        const socket = ["--engine-socket", engine.socket];
        const started = await podbot(world, [...words, ...socket, "--", "sh", "-c", hold]);
        expect(started).toMatchObject({ status: 0 });
        await eventually(() => expect(readFileSync(join(world.project, "stopped"), "utf8")).toBe("stopped\n"));
        expect(world.containers()).toHaveLength(1);
        const [{ keeper }] = JSON.parse((await podbot(world, ["ps", "--json"])).stdout) as readonly [
          { readonly keeper: number },
        ];
        process.kill(keeper, "SIGKILL");
        await eventually(() => expect(world.containers()).toEqual([]));
        await podbot(world, ["stop", started.stdout.trim()]);
      } finally {
        world.remove();
      }
    });

    test("its names are its own, and the host's stay outside", async () => {
      await using box = await openBox(engine);
      const { stdout } = await box.shell(
        "cat /etc/hosts; ls -A /run/secrets 2>/dev/null; hostname; getent hosts podbot",
      );
      expect(stdout.split("\n")).toEqual([
        "127.0.0.1 localhost podbot",
        "::1 localhost ip6-localhost ip6-loopback",
        "podbot",
        expect.stringMatching(/^127\.0\.0\.1 /),
        "",
      ]);
      const limits = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"];
      const plain = engine.cli("run", "--rm", "--network", "none", ...limits, engine.image, "cat", "/etc/hosts");
      expect(plain.stdout).not.toBe("");
      expect(plain.stdout).not.toContain("localhost podbot");
    });

    test("a volume of the image hides nothing of the workspace", async () => {
      const world = new EngineWorld(engine);
      const images: string[] = [];
      const withVolume = async (path: string, script?: string) => {
        const name = `podbot-e2e-volume-${engine.name}-${images.length}`;
        images.push(`localhost/${name}:latest`);
        await commit(engine, name, [`VOLUME ${path}`], script);
        return images.at(-1) as string;
      };
      const place = { PODBOT_WORKSPACE_CONTAINER_PATH: "/workspace" };
      try {
        mkdirSync(join(world.project, "build"));
        writeFileSync(join(world.project, "build/kept"), "of the host\n");
        const hiding = await withVolume("/workspace/build");
        await expect(world.plan({ image: hiding }, place)).rejects.toMatchObject({
          code: "MOUNT_REFUSED",
          message: expect.stringContaining("/workspace/build"),
        });
        // By another name, which leads there only inside.
        const planned = await world.plan({ image: await withVolume("/proc/self/root/workspace/build") }, place);
        const started = startSession(planned);
        // Podman makes no volumes of images.
        if (isDocker) {
          await expect(started).rejects.toMatchObject({
            code: expect.stringMatching(/GAP|CONTAINER_(CREATE|START)_FAILED/),
          });
        } else await (await started)[Symbol.asyncDispose]();
        await eventually(() => expect(world.containers()).toEqual([]));

        const beside = await withVolume("/data", "mkdir /data");
        await using session = await startSession(await world.plan({ image: beside }, place));
        const running = await session.sandbox.exec({ argv: ["sh", "-c", "cat build/kept; ls -d /data"] });
        running.stdin.end();
        expect(await text(running.stdout)).toBe("of the host\n/data\n");
      } finally {
        await eventually(() => expect(world.containers()).toEqual([]));
        for (const image of images) await call(engine.socket, "DELETE", `/v1.40/images/${image}?force=true`);
        world.remove();
      }
    });

    test.each([
      ["the directory above Podbot's own", "mkdir -p /z/z/z && ln -s /run /z/z/z/l", "/z/z/z/l", "/z/z/z/l"],
      ["Podbot's own directory", "mkdir -p /z/z/z && ln -s /run/podbot /z/z/z/l", "/z/z/z/l", "/z/z/z/l"],
      ["something in it", "ln -s /run/podbot /pb", "/pb/in", "/pb"],
    ])("a volume of the image over a link to %s is refused", async (_, making, volume, link) => {
      const world = new EngineWorld(engine);
      const name = `podbot-e2e-link-${engine.name}`;
      const image = `localhost/${name}:latest`;
      // It would run in the place of Podbot's first program.
      const program = "mkdir -p /run/podbot && printf '#!/bin/sh\\ntouch ran\\n' >/run/podbot/warden";
      try {
        await commit(engine, name, [`VOLUME ${volume}`], `${making}; ${program}; chmod 755 /run/podbot/warden`);
        await expect(startSession(await world.plan({ image }))).rejects.toMatchObject({
          code: "MOUNT_REFUSED",
          message: expect.stringContaining(`volume at ${volume} (VOLUME), and ${link} is a link`),
        });
        expect(readdirSync(world.project)).not.toContain("ran");
        await eventually(() => expect(world.containers()).toEqual([]));
        // The same image without the volume.
        await commit(engine, name, [], making);
        await (await startSession(await world.plan({ image })))[Symbol.asyncDispose]();
      } finally {
        await eventually(() => expect(world.containers()).toEqual([]));
        await call(engine.socket, "DELETE", `/v1.40/images/${image}?force=true`);
        world.remove();
      }
    });

    test("a workspace over a link of the image is refused, with a way out", async () => {
      const world = new EngineWorld(engine);
      const name = `podbot-e2e-linked-${engine.name}`;
      const image = `localhost/${name}:latest`;
      try {
        await commit(engine, name, [], "mkdir -p /var/place /a/b && ln -s var/place /place && ln -s /run /a/b/c");
        // It would run in the place of Podbot's first program.
        mkdirSync(join(world.project, "podbot"));
        writeFileSync(join(world.project, "podbot/warden"), "#!/bin/sh\ntouch /a/b/c/ran\n", { mode: 0o755 });
        const plan = (path: string) => world.plan({ image }, { PODBOT_WORKSPACE_CONTAINER_PATH: path });
        await expect(startSession(await plan("/place/work"))).rejects.toMatchObject({
          code: "MOUNT_REFUSED",
          message: expect.stringContaining("/place/work goes over a link of the image"),
          hint: expect.stringContaining("workspace.container_path"),
        });
        await expect(startSession(await plan("/a/b/c"))).rejects.toMatchObject({ code: "MOUNT_REFUSED" });
        expect(readdirSync(world.project)).not.toContain("ran");
        await (await startSession(await plan("/var/place/work")))[Symbol.asyncDispose]();
      } finally {
        await eventually(() => expect(world.containers()).toEqual([]));
        await call(engine.socket, "DELETE", `/v1.40/images/${image}?force=true`);
        world.remove();
      }
    });

    test("a container that has its name already is another's, and stays", async () => {
      await using site = await openEngineSite(engine);
      const id = newId();
      const body = { Image: engine.image, Cmd: ["true"] };
      const foreign = await call(engine.socket, "POST", `/v1.40/containers/create?name=podbot-${id}`, body);
      const { Id } = JSON.parse(foreign.body) as { readonly Id: string };
      try {
        const starting = site.wall.start(await site.plan(), { id, directory: site.newDirectory(), env: {} });
        await expect(starting).rejects.toMatchObject({ code: "CONTAINER_CREATE_FAILED", details: { conflict: true } });
        await site.wall.destroy(id);
        expect((await call(engine.socket, "GET", `/v1.40/containers/${Id}/json`)).status).toBe(200);
      } finally {
        await call(engine.socket, "DELETE", `/v1.40/containers/${Id}?force=true`);
      }
      expect((await call(engine.socket, "GET", `/v1.40/containers/${Id}/json`)).status).toBe(404);
    });

    if (process.arch === "x64")
      test("calls of another architecture are not carried out", async () => {
        await using box = await openBox(engine);
        const program = join(box.world.project, "foreign");
        const built = spawnSync("gcc", ["-nostdlib", "-static", "-o", program, "-x", "c", "-"], { input: foreign });
        expect(built.status).toBe(0);
        expect(spawnSync(program).status).toBe(0);
        // With the engine's whole filter Podbot's own is asked, which says ENOSYS (38); Podman's shorter one kills (SIGSYS).
        expect((await box.shell(program)).code).toBe(isDocker ? 38 : 128 + 31);
        expect((await box.shell("true")).code).toBe(0);
      });
  });
}

/** Asks for its number in the words of 32 bits, and ends with the number of the error. */
const foreign = `void _start(void) {
  long said;
  __asm__ volatile("int $0x80" : "=a"(said) : "a"(20) : "memory");
  __asm__ volatile("syscall" : : "a"(231), "D"((int)said < 0 ? -(int)said : 0));
}`;

/** An image with changes in the words of a Dockerfile, and what a script has made. */
async function commit(engine: TestEngine, name: string, changes: readonly string[], script = "true"): Promise<void> {
  const container = `${name}-made`;
  const limits = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"];
  const words = ["run", "--name", container, ...limits, "--network", "none", engine.image, "sh", "-c", script];
  const made = engine.cli(...words);
  try {
    if (made.status !== 0) throw new Error(made.stderr);
    const query = new URLSearchParams([
      ["container", container],
      ["repo", `localhost/${name}`],
      ["tag", "latest"],
      ...changes.map((change): [string, string] => ["changes", change]),
    ]);
    const { status, body } = await call(engine.socket, "POST", `/v1.40/commit?${query}`, {});
    if (status !== 201) throw new Error(body);
  } finally {
    await call(engine.socket, "DELETE", `/v1.40/containers/${container}?force=true`);
  }
}
