import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { discoverEngine } from "../../src/engine/discover.ts";
import { openPrivateService } from "../../src/engine/service.ts";
import { eventually } from "../eventually.ts";
import { EngineWorld } from "./engine-box.ts";
import { newEngine, type TestEngine } from "./engines/engine.ts";
import { podbot } from "./shipped.ts";

/** What `podbot run` does where Podman is installed and nobody listens: it serves itself. */
export function privateService(title: string, name: "podman" | "podman-rootless"): void {
  describe(`podbot run with ${title}, where no engine answers`, () => {
    let engine: TestEngine & AsyncDisposable;
    let world: EngineWorld;
    let directory: string;
    const run = (...command: string[]) =>
      podbot(world, ["run", "--quiet", "--agent", "custom", "--image", engine.image, "--", ...command]);

    beforeAll(async () => {
      // Its data without its service: the socket is there, and refuses.
      engine = await newEngine(name);
      await engine.kill();
      world = new EngineWorld(engine);
      const { PODBOT_TEST_RUN: _, ...env } = engine.env;
      Object.assign(world.env, env);
      directory = join(world.env["XDG_RUNTIME_DIR"] ?? "", "podbot/engines/podman");
    });
    afterAll(async () => {
      for (const pid of services(directory)) process.kill(pid, "SIGTERM");
      await eventually(() => expect(services(directory)).toEqual([]));
      world?.remove();
      await engine?.[Symbol.asyncDispose]();
    });

    test("names every place that was tried, where nobody may start a service either", async () => {
      const uid = process.getuid?.() ?? 0;
      const own = [world.env["XDG_RUNTIME_DIR"], `/run/user/${uid}`];
      const places = [
        ...own.flatMap((place) => [`${place}/podman/podman.sock`, `${place}/docker.sock`]),
        `${world.home}/.docker/run/docker.sock`,
        "/run/podman/podman.sock",
        "/var/run/docker.sock",
      ];
      const error = await discoverEngine({ env: world.env, home: world.home, uid }).catch((reason: unknown) => reason);
      expect(error).toMatchObject({ code: "ENGINE_NOT_FOUND" });
      for (const place of places) expect((error as Error).message).toMatch(new RegExp(`^ +${place}: `, "m"));
      expect(services(directory)).toEqual([]);
    });

    test("starts one service for two who come at once, which serves the next, too", async () => {
      const both = await Promise.all([run("echo", "one"), run("echo", "two")]);
      expect(both).toEqual([
        { status: 0, stdout: "one\n", stderr: "" },
        { status: 0, stdout: "two\n", stderr: "" },
      ]);
      const [first, ...more] = services(directory);
      expect(more).toEqual([]);
      expect(first).toBeDefined();
      expect(await run("sh", "-c", "echo three; exit 3")).toEqual({ status: 3, stdout: "three\n", stderr: "" });
      expect(services(directory)).toEqual([first]);
      // It ends by itself when it is not used.
      expect(readFileSync(`/proc/${first}/cmdline`, "utf8")).toContain("\0--time=60\0");
      // Sessions find it again by their record.
      const words = ["run", "--detach", "--quiet", "--agent", "custom", "--image", engine.image, "--", "sleep", "300"];
      const id = (await podbot(world, words)).stdout.trim();
      await eventually(() => expect(listed(world)).toEqual([`podbot-${id}`]));
      expect((await podbot(world, ["exec", id, "--", "sh", "-c", "exit 4"])).status).toBe(4);
      process.kill(first as number, "SIGKILL");
      await eventually(() => expect(services(directory)).toEqual([]));
      expect(await podbot(world, ["stop", id])).toMatchObject({ status: 0 });
      await eventually(() => expect(listed(world)).toEqual([]));
    });

    test("has a service that ends when nobody uses it, and is there again for who comes then", async () => {
      const options = { podman: "/usr/bin/podman", directory: join(world.directory, "run/s"), env: world.env };
      const open = () => openPrivateService({ ...options, uid: process.getuid?.() ?? 0, idleSeconds: 4 });
      const { path } = await open();
      const [first] = services(options.directory);
      expect(first).toBeDefined();
      await eventually(() => expect(services(options.directory)).toEqual([]));
      expect((await open()).path).toBe(path);
      const [second] = services(options.directory);
      expect(second).toBeDefined();
      expect(second).not.toBe(first);
      await eventually(() => expect(services(options.directory)).toEqual([]));
    });
  });
}

/** Names of its containers, by the command line: nobody answers on the engine's socket. */
function listed({ engine, owner }: EngineWorld): readonly string[] {
  const words = ["--format", "{{.Names}}", "--filter", `label=podbot.owner=${owner}`];
  const { status, stdout, stderr } = engine.cli("ps", "--all", ...words);
  if (status !== 0) throw new Error(stderr);
  return stdout.split("\n").filter((line) => line !== "");
}

/** The processes that serve in a directory. Of rootless Podman one serves, and one waits for it outside its namespace. */
function services(directory: string): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const words = readFileSync(`/proc/${pid}/cmdline`, "utf8");
        return words.includes("\0system\0service\0") && words.includes(`unix://${directory}/`) && !isChild(pid, words);
      } catch {
        return false;
      }
    });
}

/** Whether its parent is the same program with the same words. */
function isChild(pid: number, words: string): boolean {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const parent = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1];
  return readFileSync(`/proc/${parent}/cmdline`, "utf8") === words;
}
