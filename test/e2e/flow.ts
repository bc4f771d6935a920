import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { basename, join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { startSession } from "../../src/keeper/kept-session.ts";
import { processesOf, sessionsOf } from "../cli/terminal/remains.ts";
import { eventually } from "../eventually.ts";
import { openTerminal } from "../terminal.ts";
import { EngineWorld } from "./engine-box.ts";
import { networkWords, type TestEngine } from "./engines/engine.ts";
import type { Extent } from "./extent.ts";
import { openProxy } from "./proxy.ts";
import { podbot, type Result, start } from "./shipped.ts";

/**
 * What a person does with `podbot run` on an engine, by the program as it is shipped. The whole of it runs on one engine.
 * Words, flags and refusals come from Podbot alone, and how it ends where a container is taken away is among the faults
 * of each engine: elsewhere these are left out.
 */
export function flows(title: string, engine: TestEngine, extent: Extent): void {
  /** Registers a test where it could end in another way than on the engine that has everything. */
  const differs =
    (...parts: readonly Extent[]) =>
    (name: string, body: () => Promise<void>) => {
      if (extent === "everything" || parts.includes(extent)) test(name, body);
    };
  const isWhole = extent === "everything";
  const signals = (
    [
      ["SIGINT", 130],
      ["SIGTERM", 143],
    ] as const
  ).slice(isWhole || extent === "the engine's part" ? 0 : 1);
  const isGvisor = engine.runtime === "runsc";
  const isRoot = engine.name !== "docker-group";
  const hasDoors = Object.keys(networkWords(engine)).length === 0;
  const home = isRoot ? "/root" : "/home/podbot";
  const inside = isRoot ? { uid: 0, gid: 0 } : engine.caller;

  describe(`podbot run on ${title}`, () => {
    let world: EngineWorld;
    beforeAll(() => {
      world = new EngineWorld(engine);
      world.repository();
    });
    afterAll(() => world?.remove());

    test("runs an agent of the workspace in a container that the engine shows, and leaves none", async () => {
      const agent = 'echo "stub $*"; echo told >&2; until test -e go; do sleep 0.05; done; rm go; exit 7';
      world.file("home/project/agent.sh", `#!/bin/sh\n${agent}\n`, 0o755);
      const running = start(world, ["run", "--agent", "custom", ...on(world), "--", "./agent.sh", "one", "two words"]);
      await eventually(() => expect(running.said()).toBe("stub one two words\n"));
      const [name = "", ...more] = world.containers();
      expect(more).toEqual([]);
      expect(name).toMatch(/^podbot-[a-z0-9]{10}$/);
      expect(engine.cli("inspect", "--format", "{{.State.Status}}", name).stdout).toBe("running\n");
      const listed = JSON.parse((await podbot(world, ["ps", "--json"])).stdout) as readonly unknown[];
      const command = ["./agent.sh", "one", "two words"];
      expect(listed).toMatchObject([{ id: name.slice(7), state: "running", wall: "engine", command }]);
      world.file("home/project/go");
      const { status, stdout, stderr } = await running.ended;
      expect({ status, stdout }).toEqual({ status: 7, stdout: "stub one two words\n" });
      expect(stderr).toContain(`podbot: ${world.project} is mounted at ${world.project}, read-write\n`);
      expect(stderr).toMatch(/^podbot: starting \S+ on (podman|docker) \S+/m);
      expect(stderr).toMatch(/^told$/m);
      // Without a terminal nothing is drawn.
      expect(stderr).not.toContain("\r");
      expect(stderr).not.toContain("\u001b");
      await eventually(() => expect(world.containers()).toEqual([]));
      await expectNoTrace(world);
    });

    differs()("prints nothing but the agent's words where it is told to be quiet", async () => {
      const words = ["run", "--quiet", "--agent", "custom", ...on(world), "--", "sh", "-c", "echo out; echo err >&2"];
      expect(await podbot(world, words)).toEqual({ status: 0, stdout: "out\n", stderr: "err\n" });
    });

    differs()("gives the agent its input, and ends as it does or as it cannot be started", async () => {
      const run = (...command: string[]) =>
        podbot(world, ["run", "--quiet", "--agent", "custom", ...on(world), "--", ...command], { input: "typed\n" });
      expect(await run("sh", "-c", "cat; kill -TERM $$")).toEqual({ status: 143, stdout: "typed\n", stderr: "" });
      expect(await run("no-such-program")).toMatchObject({
        status: 127,
        stdout: "",
        stderr: expect.stringContaining("COMMAND_NOT_FOUND"),
      });
      await eventually(() => expect(world.containers()).toEqual([]));
    });

    test.each(signals)("ends with the agent and the container when it gets %s", async (signal, status) => {
      const agent = "trap 'echo asked; exit 0' INT TERM; echo go; while :; do sleep 0.1; done";
      const running = start(world, ["run", "--agent", "custom", ...on(world), "--", "sh", "-c", agent]);
      await eventually(() => expect(running.said()).toBe("go\n"));
      running.kill(signal);
      const ended = await running.ended;
      expect(ended.stdout).toBe("go\nasked\n");
      expect([0, status]).toContain(ended.status);
      await expectNoTrace(world);
      // While the container is being made there is no agent to ask.
      await using proxy = await openProxy(world, engine.socket, (line) => {
        if (/^POST \S+\/containers\/create/.test(line)) early.kill(signal);
      });
      const flags = ["--image", engine.image, "--engine-socket", proxy.path];
      const early = start(world, ["run", "--quiet", "--agent", "custom", ...flags, "--", "echo", "started"]);
      expect(await early.ended).toEqual({ status, stdout: "", stderr: "" });
      await expectNoTrace(world);
    });

    differs("the kernel's part")("ends at once when somebody takes the container away", async () => {
      const running = start(world, ["run", "--agent", "custom", ...on(world), "--", "sh", "-c", "echo go; sleep 300"]);
      await eventually(() => expect(running.said()).toBe("go\n"));
      const [name = ""] = world.containers();
      expect(engine.cli("rm", "--force", name).status).toBe(0);
      const { status, stderr } = await running.ended;
      // Podman asks the first process to end before it is killed, and the agent with it.
      expect([125, 143]).toContain(status);
      if (status === 125) expect(stderr).toContain("BOX_LOST");
      await expectNoTrace(world);
    });

    differs()("hands allowed values of the caller to the agent, and says none of them itself", async () => {
      const secret = randomBytes(16).toString("hex");
      world.file("home/.config/podbot/config.toml", '[agent]\nenv_allowlist = ["TOKEN_OF_OWNER", "NOT_SET"]\n');
      world.env["TOKEN_OF_OWNER"] = secret;
      try {
        const words = ["run", "--debug", "--agent", "custom", ...on(world), "--env", `GIVEN=given-${secret}`, "--"];
        const script = 'echo "${#TOKEN_OF_OWNER} ${#GIVEN} ${NOT_SET-none}"';
        const { status, stdout, stderr } = await podbot(world, [...words, "sh", "-c", script]);
        expect({ status, stdout }).toEqual({ status: 0, stdout: "32 38 none\n" });
        expect(stderr).not.toContain(secret);
        expect(stderr).toContain("TOKEN_OF_OWNER");
      } finally {
        delete world.env["TOKEN_OF_OWNER"];
        rmSync(join(world.home, ".config"), { recursive: true });
      }
    });

    test("works in an empty directory of the container's own where it is told so, and mounts none", async () => {
      const count = `grep -c ${basename(world.directory)}/ /proc/self/mountinfo`;
      const script = `pwd; ls -A; echo x >file && cat file; ${count}; touch /usr/x && echo open`;
      for (const isReadOnly of [false, true]) {
        const root = isReadOnly ? "[sandbox]\nread_only_root = true\n" : "";
        world.file(
          "home/.config/podbot/config.toml",
          `[workspace]\nsource = "empty"\nbase_dir = "/work/here"\n${root}`,
        );
        const { stdout, stderr } = await podbot(world, [
          "run",
          "--agent",
          "custom",
          ...on(world),
          "--",
          "sh",
          "-c",
          script,
        ]);
        // Podbot's own corner, whom to ask for names, which names there are, what lies over Podman's secrets, and for an
        // ordinary user what stays writable; gVisor does not say where a mount comes from.
        const own = isGvisor ? 0 : isReadOnly && !isRoot ? 4 : 2;
        const sources = own + (hasDoors ? 1 : 0) + (isGvisor || engine.name.startsWith("docker") ? 0 : 1);
        const free = isReadOnly || !isRoot ? "" : "open\n";
        expect({ stdout, isReadOnly }).toEqual({ stdout: `/work/here\nx\n${sources}\n${free}`, isReadOnly });
        expect(stderr).not.toContain("is mounted at");
      }
      rmSync(join(world.home, ".config"), { recursive: true });
    });

    test("protects the same files of the workspace, wherever that is seen inside", async () => {
      const attempts = [
        "echo evil >.git/hooks/pre-commit",
        "echo evil >>.git/config",
        "mkdir .podbot",
        "echo evil >.podbot/config.toml",
        "mv .git/hooks .git/other",
        "mv .git git",
        "rm -rf .git/hooks",
      ];
      const script = [
        "pwd",
        ...attempts.map((attempt) => `(${attempt}) 2>/dev/null && echo "done: ${attempt}"`),
        "echo free >file.txt && git -c user.name=A -c user.email=a@b commit -qam second && git log --format=%s",
        "mkdir own && rmdir own && echo ordinary",
      ].join("\n");
      world.file("home/.config/podbot/config.toml", '[workspace]\ncontainer_path = "/workspace/deep"\n');
      try {
        const { status, stdout, stderr } = await podbot(world, [
          ...["run", "--agent", "custom", ...on(world), "--workspace", world.project, "--", "sh", "-c", script],
        ]);
        expect({ status, stdout }).toEqual({ status: 0, stdout: "/workspace/deep\nsecond\nfirst\nordinary\n" });
        expect(stderr).toContain(`podbot: ${world.project} is mounted at /workspace/deep, read-write\n`);
      } finally {
        rmSync(join(world.home, ".config"), { recursive: true });
      }
      expect(world.git("log", "--format=%s")).toBe("second\nfirst\n");
      expect(existsSync(join(world.project, ".podbot"))).toBe(false);
      // The same commands where nobody stands in the way.
      const control = world.outside(`cp -r . ../copy && cd ../copy && ${attempts[0]} && ${attempts[2]} && echo free`);
      expect(control.stdout).toBe("free\n");
    });

    test("leaves files that the caller can use, and uses those of the caller", async () => {
      world.file("home/project/given", "given\n", 0o600);
      mkdirSync(join(world.project, "shut"), { mode: 0o700 });
      const script = `cat given && echo changed >given && echo in >shut/in && umask 022
        mkdir -p made/deep && echo text >made/deep/file && echo '#!/bin/sh' >made/run && chmod 755 made/run
        echo private >made/private && chmod 600 made/private && chmod 700 made/deep && ln -s deep/file made/link`;
      expect(await shell(world, script)).toEqual({ status: 0, stdout: "given\n", stderr: "" });
      const { uid, gid } = engine.caller;
      const at = (path: string) => join(world.project, path);
      const modes = {
        made: 0o755,
        "made/deep": 0o700,
        "made/deep/file": 0o644,
        "made/run": 0o755,
        "made/private": 0o600,
      };
      for (const [path, mode] of Object.entries(modes)) {
        const stats = lstatSync(at(path));
        expect({ path, uid: stats.uid, gid: stats.gid, mode: stats.mode & 0o777 }).toEqual({ path, uid, gid, mode });
      }
      expect(readFileSync(at("made/link"), "utf8")).toBe("text\n");
      expect(readFileSync(at("given"), "utf8")).toBe("changed\n");
      writeFileSync(at("made/private"), "the caller's\n");
      expect(spawnSync(at("made/run")).status).toBe(0);
      rmSync(at("made"), { recursive: true });
      expect(await shell(world, "rm -r given shut && ls")).toMatchObject({
        status: 0,
        stdout: expect.not.stringMatching(/given|shut/),
      });
    });

    test("leaves nothing that the caller cannot remove, whoever it was made to belong to", async () => {
      const archive = join(world.project, "foreign.tar");
      const source = join(world.directory, "foreign");
      mkdirSync(join(source, "locked"), { recursive: true });
      writeFileSync(join(source, "locked/file"), "foreign\n", { mode: 0o600 });
      const owner = ["--owner=1234", "--group=1234", "--numeric-owner"];
      expect(spawnSync("tar", ["-cf", archive, ...owner, "-C", world.directory, "foreign"]).status).toBe(0);
      chmodSync(source, 0o700);
      const { status, stdout } = await shell(
        world,
        "tar xpf foreign.tar && chmod 700 foreign foreign/locked && stat -c %u foreign",
      );
      expect({ status, stdout }).toEqual({ status: 0, stdout: isRoot ? "1234\n" : `${engine.caller.uid}\n` });
      const made = join(world.project, "foreign");
      expect(readFileSync(join(made, "locked/file"), "utf8")).toBe("foreign\n");
      writeFileSync(join(made, "locked/file"), "the caller's\n");
      rmSync(made, { recursive: true });
      expect(existsSync(made)).toBe(false);
    });

    differs("the engine's part", "the caller's part")(
      "shows the plan, and a script that the engine's own command line carries out",
      async () => {
        const secret = randomBytes(8).toString("hex");
        const words = ["run", "--dry-run", "--agent", "custom", "--env", `SECRET=${secret}`, ...on(world)];
        const command = [
          "--",
          "sh",
          "-c",
          'echo "inside $(cat file.txt)"; echo made >by-hand; echo evil >>.git/config',
        ];
        const json = await podbot(world, [...words, "--json", ...command]);
        expect(JSON.parse(json.stdout)).toMatchObject({
          wall: "engine",
          container: { profile: "minimal", engine: { image: { name: engine.image } } },
        });
        const { status, stdout: script, stderr } = await podbot(world, [...words, ...command]);
        expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
        expect(json.stdout + script).not.toContain(secret);
        await eventually(() => expect(world.containers()).toEqual([]));
        const before = readFileSync(join(world.project, ".git/config"), "utf8");
        // Two suites may share a daemon, and the script has one name for all.
        const path = world.file("by-hand.sh", script.replaceAll("podbot-by-hand", `by-hand-${secret}`), 0o755);
        const ran = spawnSync("bash", [path], { encoding: "utf8", cwd: "/", env: commandEnvironment(engine) });
        expect(ran).toMatchObject({ stdout: "inside free\n", stderr: expect.stringMatching(/Read-only|denied/) });
        expect(readFileSync(join(world.project, "by-hand"), "utf8")).toBe("made\n");
        expect(readFileSync(join(world.project, ".git/config"), "utf8")).toBe(before);
        expect(lstatSync(join(world.project, "by-hand"))).toMatchObject({ uid: engine.caller.uid });
      },
    );
  });

  const describeWhole = isWhole ? describe : () => {};
  describeWhole(`podbot sandbox on ${title}`, () => {
    let world: EngineWorld;
    beforeAll(() => {
      world = new EngineWorld(engine);
    });
    afterAll(() => world?.remove());
    const sandbox = (words: readonly string[], ...command: string[]) =>
      podbot(world, ["sandbox", "--quiet", "--wall", "engine", ...on(world), ...words, "--", ...command], {
        input: "one\ntwo\n",
      });

    test("is a command among others: with pipes, with its own status, and no longer than it may", async () => {
      expect(await sandbox([], "sh", "-c", "sort -r; echo err >&2; exit 5")).toEqual({
        status: 5,
        stdout: "two\none\n",
        stderr: "err\n",
      });
      expect(await sandbox(["--timeout", "1s"], "sleep", "60")).toMatchObject({ status: 124 });
      expect((await sandbox([], "/etc")).status).toBe(126);
      await eventually(() => expect(world.containers()).toEqual([]));
      await expectNoTrace(world);
    });
  });

  describe(`a session on ${title} that is left to itself`, () => {
    let world: EngineWorld;
    let id = "";
    beforeAll(async () => {
      world = new EngineWorld(engine);
      const agent = "echo said; echo complained >&2; until test -e go; do sleep 0.05; done; exit 3";
      const words = ["run", "--detach", "--agent", "custom", ...on(world), "--", "sh", "-c", agent];
      const { status, stdout, stderr } = await podbot(world, words);
      const told = `podbot: ${world.project} is mounted at ${world.project}, read-write\n`;
      expect({ status, stderr }).toEqual({ status: 0, stderr: told });
      id = stdout.trim();
    });
    afterAll(async () => {
      await podbot(world, ["stop", "--all", "--time", "0"]);
      world?.remove();
    });

    test("is listed, and keeps what its agent says", async () => {
      expect(world.containers()).toEqual([`podbot-${id}`]);
      const [listed] = JSON.parse((await podbot(world, ["ps", "--json"])).stdout) as readonly unknown[];
      expect(listed).toMatchObject({ id, state: "running", wall: "engine", detached: true });
      await eventually(async () => {
        const logs = await podbot(world, ["logs", id]);
        expect(logs).toEqual({ status: 0, stdout: "said\n", stderr: "complained\n" });
      });
    });

    differs()("starts more processes, each with its own input and status", async () => {
      const exec = (...words: string[]) => podbot(world, ["exec", ...words], { input: "typed\n" });
      const plain = await exec(id, "--", "sh", "-c", "cat; test -t 0 || test -t 1 || echo plain; echo err >&2; exit 9");
      expect(plain).toEqual({ status: 9, stdout: "typed\nplain\n", stderr: "err\n" });
      const detached = await exec("--detach", id, "--", "sh", "-c", "test -t 0 || echo none >by-exec; cat; exit 255");
      expect(detached).toEqual({ status: 255, stdout: "", stderr: "" });
      expect(readFileSync(join(world.project, "by-exec"), "utf8")).toBe("none\n");
      expect((await exec(id, "--", "sh", "-c", "kill -KILL $$")).status).toBe(137);
      expect((await exec(id, "--", "no-such-program")).status).toBe(127);
      expect((await exec("--timeout", "500ms", id, "--", "sleep", "60")).status).toBe(124);
      expect((await exec("--cwd", "/usr", "--env", "GIVEN=yes", id, "--", "sh", "-c", "pwd; echo $GIVEN")).stdout).toBe(
        "/usr\nyes\n",
      );
    });

    differs()("gives a process a terminal where both ends are one, with its size, and else none", async () => {
      const terminal = openTerminal(world);
      terminal.type(`podbot exec ${id} -- sh -c 'test -t 0 && test -t 1 && test -t 2 && stty size'; echo "status $?"`);
      await terminal.sees(/^40 120\nstatus 0$/m);
      terminal.type(
        `podbot exec ${id} -- sh -c 'test -t 0 || test -t 1 || echo plain' | cat; echo "status $((1 + 1))"`,
      );
      await terminal.sees(/^plain\nstatus 2$/m);
      terminal.type(
        `podbot exec --no-tty ${id} -- sh -c 'test -t 0 || test -t 1 || echo neither'; echo "status $((1 + 2))"`,
      );
      await terminal.sees(/^neither\nstatus 3$/m);
      if (isGvisor) return; // It tells nobody of a new size: see the conformance suite's list.
      terminal.type(
        `podbot exec ${id} -- sh -c 'trap "stty size; exit" WINCH; echo ready; while :; do sleep 0.1; done'`,
      );
      await terminal.sees(/^ready$/m);
      terminal.resize(100, 30);
      await terminal.sees(/^30 100$/m);
    });

    test("ends with its agent, and is remembered until it is stopped", async () => {
      world.file("home/project/go");
      await eventually(() => expect(world.containers()).toEqual([]));
      await eventually(async () => {
        const [listed] = JSON.parse((await podbot(world, ["ps", "--json"])).stdout) as readonly unknown[];
        expect(listed).toMatchObject({ id, state: "ended", exit: { code: 3 } });
      });
      const late = await podbot(world, ["exec", id, "--", "true"]);
      expect(late).toMatchObject({ status: 125, stderr: expect.stringContaining("SESSION_ENDED") });
      expect((await podbot(world, ["logs", id])).stdout).toBe("said\n");
      expect(await podbot(world, ["stop", id])).toMatchObject({ status: 0, stdout: `${id}\n` });
      await expectNoTrace(world);
    });

    differs("the engine's part", "the kernel's part")(
      "is stopped with its container, also where its keeper was killed",
      async () => {
        const begin = async () => {
          const words = ["run", "--detach", "--quiet", "--agent", "custom", ...on(world), "--", "sleep", "300"];
          return (await podbot(world, words)).stdout.trim();
        };
        const [first, second] = [await begin(), await begin()];
        expect(world.containers().toSorted()).toEqual([`podbot-${first}`, `podbot-${second}`].toSorted());
        expect(await podbot(world, ["stop", "--time", "0", first])).toMatchObject({ status: 0 });
        await eventually(() => expect(world.containers()).toEqual([`podbot-${second}`]));
        // What both had to protect is protected still.
        const attack = "echo evil >.podbot/config.toml || mv .podbot away || rmdir .podbot || echo held";
        expect((await podbot(world, ["exec", second, "--", "sh", "-c", attack])).stdout).toBe("held\n");
        const [{ keeper }] = JSON.parse((await podbot(world, ["ps", "--json"])).stdout) as readonly [
          { keeper: number },
        ];
        process.kill(keeper, "SIGKILL");
        await eventually(() => expect(existsSync(`/proc/${keeper}`)).toBe(false));
        expect((await podbot(world, ["exec", second, "--", "true"])).status).toBe(125);
        expect(await podbot(world, ["stop", "--all"])).toMatchObject({ status: 0 });
        await eventually(() => expect(world.containers()).toEqual([]));
        await expectNoTrace(world);
      },
    );
  });

  describe(`credentials on ${title}`, () => {
    let world: EngineWorld;
    beforeAll(() => {
      world = new EngineWorld(engine);
    });
    afterAll(() => world?.remove());

    /** What is in the home inside, and what was asked of the engine. */
    async function look(config: string, script: string) {
      world.file("home/.config/podbot/config.toml", config);
      await using proxy = await openProxy(world, engine.socket);
      const words = ["run", "--agent", "custom", "--image", engine.image, "--engine-socket", proxy.path];
      const result = await podbot(world, [...words, "--", "sh", "-c", script]);
      const { requests } = proxy;
      const uploads = requests.filter((line) => line.startsWith("PUT "));
      // For an ordinary user, whom the image does not know, a home and a name are made there, too.
      const toHome = new RegExp(`[?&]path=${encodeURIComponent(home)}(&|$)`);
      return { ...result, requests, uploads: isRoot ? uploads : uploads.filter((line) => toHome.test(line)) };
    }
    differs("the caller's part")(
      "that are not there are not asked for, and those that are not wanted stay out",
      async () => {
        const absent = await look("", "ls -A ~");
        expect(absent).toMatchObject({ status: 0, stdout: expect.not.stringMatching(/claude|codex/) });
        expect(absent.stderr).not.toContain("copied");
        expect(absent.uploads).toHaveLength(0);
        expect(absent.requests).toContainEqual(expect.stringMatching(/^POST .*\/containers\/create/));
        world.file("home/.claude/.credentials.json", "secret of claude\n", 0o600);
        const unwanted = await look("[creds]\ncopy_claude = false\ncopy_codex = false\n", "ls -A ~");
        expect(unwanted).toMatchObject({ status: 0, stdout: expect.not.stringMatching(/claude|codex/) });
        expect(unwanted.uploads).toHaveLength(0);
        const wanted = await look("", "cat ~/.claude/.credentials.json");
        expect(wanted).toMatchObject({ status: 0, stdout: "secret of claude\n" });
        expect(wanted.stderr).toContain(`podbot: copied to the container: ${home}/.claude\n`);
        expect(wanted.uploads).toHaveLength(1);
      },
    );

    differs()("are said not to be found where the image's home is a link to what a mount covers", async () => {
      const image = `localhost/podbot-e2e-linked-home-${engine.name}:latest`;
      const link = `rmdir ${home} 2>/dev/null; rm -rf ${home}; ln -s ${world.project}/homes ${home}`;
      const limits = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"];
      const make = ["run", "--name", "linked-home", "--network", "none", ...limits, engine.image, "sh", "-c"];
      const made = engine.cli(...make, `mkdir -p ${world.project}/homes; ${link}`);
      expect(made).toMatchObject({ status: 0 });
      engine.cli("commit", "linked-home", image);
      engine.cli("rm", "linked-home");
      mkdirSync(join(world.project, "homes"));
      world.file("home/.claude/.credentials.json", "secret of claude\n", 0o600);
      const words = ["--image", image, "--engine-socket", engine.socket, "--", "ls", "-A", `${home}/`];
      const { stdout, stderr } = await podbot(world, ["run", "--agent", "custom", ...words]);
      expect(stdout).not.toContain(".claude");
      expect(stderr).toMatch(/What was copied to the container cannot be found inside: \/root\/\.claude\b/);
      expect(readdirSync(join(world.project, "homes"))).not.toContain(".claude");
    });

    test("come with their modes and links, as files of whoever runs inside, and without sockets", async () => {
      world.file("home/.claude/.credentials.json", "secret of claude\n", 0o600);
      world.file("home/.claude/hooks/run", "#!/bin/sh\necho ran\n", 0o755);
      world.file("home/.claude/settings.json", "{}\n", 0o644);
      chmodSync(join(world.home, ".claude/hooks"), 0o750);
      world.file("home/.codex/auth.json", "secret of codex\n", 0o400);
      symlinkSync("settings.json", join(world.home, ".claude/link"));
      symlinkSync("/no/such/place", join(world.home, ".claude/nowhere"));
      spawnSync("mkfifo", [join(world.home, ".claude/fifo")]);
      const server = createServer();
      server.listen(join(world.home, ".claude/socket"));
      await once(server, "listening");
      const script = `cd; for f in $(find .claude .codex | sort); do
        printf '%s %s %s:%s\\n' $f "$(test -L $f && readlink $f || stat -c %a $f)" "$(stat -c %u $f 2>/dev/null || echo -)" "$(stat -c %g $f 2>/dev/null || echo -)"
        done; cat .claude/.credentials.json .codex/auth.json .claude/link; .claude/hooks/run; echo more >>.claude/settings.json && rm -r .codex`;
      const { status, stdout, stderr, uploads } = await look("", script);
      server.close();
      const who = `${inside.uid}:${inside.gid}`;
      const modes = (path: string) => (lstatSync(join(world.home, path)).mode & 0o7777).toString(8);
      expect(stdout.split("\n")).toEqual([
        `.claude ${modes(".claude")} ${who}`,
        `.claude/.credentials.json 600 ${who}`,
        `.claude/hooks 750 ${who}`,
        `.claude/hooks/run 755 ${who}`,
        `.claude/link settings.json ${who}`,
        expect.stringMatching(/^\.claude\/nowhere \/no\/such\/place /),
        `.claude/settings.json 644 ${who}`,
        `.codex ${modes(".codex")} ${who}`,
        `.codex/auth.json 400 ${who}`,
        "secret of claude",
        "secret of codex",
        "{}",
        "ran",
        "",
      ]);
      expect(status).toBe(0);
      expect(stderr).toContain(`podbot: copied to the container: ${home}/.claude, ${home}/.codex\n`);
      expect(stderr).not.toContain("secret of");
      expect(uploads).toHaveLength(1);
      // It was a copy.
      expect(readFileSync(join(world.home, ".claude/settings.json"), "utf8")).toBe("{}\n");
    });

    test("come into a container whose own files are read-only, too", async () => {
      const { status, stdout } = await look(
        "[sandbox]\nread_only_root = true\n",
        "cat ~/.codex/auth.json; touch /usr/x || echo shut",
      );
      expect({ status, stdout }).toEqual({ status: 0, stdout: "secret of codex\nshut\n" });
    });

    differs()("that cannot be copied end the run before the container has started, and leave none", async () => {
      rmSync(join(world.home, ".codex"), { recursive: true });
      spawnSync("mkfifo", [join(world.home, ".codex")]);
      const { status, stdout, stderr, requests } = await look("", "echo started");
      rmSync(join(world.home, ".codex"));
      expect({ status, stdout }).toEqual({ status: 125, stdout: "" });
      expect(stderr).toContain("FILESYSTEM");
      expect(requests.filter((line) => /\/start/.test(line))).toEqual([]);
      await eventually(() => expect(world.containers()).toEqual([]));
      await expectNoTrace(world);
    });

    differs("the caller's part")(
      "of a known agent are its own files alone, with the directories above them",
      async () => {
        rmSync(join(world.home, ".codex"), { recursive: true, force: true });
        world.file("home/.codex/auth.json", "secret of codex\n", 0o400);
        world.file("home/.local/share/opencode/auth.json", "secret of opencode\n", 0o600);
        world.file("home/.local/share/opencode/log/old", "not needed\n");
        // The image has no such agent; the workspace brings one.
        const script =
          'cd; find .local .codex | sort; stat -c "%a %u" .local .local/share/opencode; cat .local/*/*/auth.json';
        world.file("home/project/bin/opencode", `#!/bin/sh\necho "$*"; ${script}\n`, 0o755);
        const path = `${world.project}/bin:/usr/local/bin:/usr/bin:/bin`;
        world.file("home/.config/podbot/config.toml", `[environment.set]\nPATH = "${path}"\n`);
        const words = ["run", "--agent", "opencode", "--image", engine.image, "--engine-socket", engine.socket];
        const { stdout, stderr } = await podbot(world, words);
        rmSync(join(world.project, "bin"), { recursive: true });
        rmSync(join(world.home, ".local/share/opencode"), { recursive: true });
        expect(stderr).toContain(`podbot: copied to the container: ${home}/.local/share/opencode/auth.json\n`);
        expect(stdout.split("\n")).toEqual([
          "--auto",
          ".local",
          ".local/share",
          ".local/share/opencode",
          ".local/share/opencode/auth.json",
          `700 ${inside.uid}`,
          `700 ${inside.uid}`,
          "secret of opencode",
          "",
        ]);
      },
    );

    differs()("have the owner's name for git with them, and never one that the workspace has chosen", async () => {
      rmSync(join(world.home, ".claude"), { recursive: true });
      world.repository();
      world.git("config", "user.name", "Evil");
      world.git("config", "user.email", "evil@example.com");
      const script = "cd / && git config --global user.name; git config --global user.email; echo end";
      const nobody = await look("", script);
      expect(nobody.stdout).toBe("end\n");
      for (const key of ["user.name", "user.email"]) {
        expect(nobody.stderr).toContain(`git ${key} is not configured on the host`);
      }
      world.file("home/.gitconfig", '[user]\nname = -Olga Öwner "O"\nemail = olga@example.com\n');
      const owner = await look("", script);
      expect(owner.stdout).toBe('-Olga Öwner "O"\nolga@example.com\nend\n'.replaceAll('"', ""));
      expect(owner.stderr).not.toContain("not configured");
    });
  });

  describe(`a directory that ${title} is to mount`, () => {
    let world: EngineWorld;
    beforeAll(() => {
      world = new EngineWorld(engine);
      world.file("allowed/repo/file", "allowed\n");
      world.file("allowed-not/file", "other\n");
      world.file("elsewhere/file", "elsewhere\n");
      symlinkSync("../elsewhere", join(world.directory, "allowed/escape"));
      symlinkSync("repo", join(world.directory, "allowed/link"));
    });
    // The engine takes its time to remove the one before.
    beforeEach(() => eventually(() => expect(world.containers()).toEqual([])));
    afterAll(async () => {
      await expectNoTrace(world);
      world.remove();
    });

    /** From a directory of no interest, as the configuration says. */
    function mount(hostPath: string, containerPath?: string): Promise<Result> {
      const roots = JSON.stringify([join(world.directory, "allowed")]);
      const target = containerPath === undefined ? "" : `container_path = ${JSON.stringify(containerPath)}\n`;
      const source = `source = "host_mount"\nhost_path = ${JSON.stringify(hostPath)}\n${target}`;
      world.file("home/.config/podbot/config.toml", `[mounts]\nallowed_roots = ${roots}\n[workspace]\n${source}`);
      return podbot(world, [
        "run",
        "--agent",
        "custom",
        ...on(world),
        "--",
        "sh",
        "-c",
        "pwd; cat file; echo made >made",
      ]);
    }

    test("gets nothing that was meant for the container's own home", async () => {
      world.file("home/.codex/auth.json", "secret of codex\n");
      await mount(join(world.directory, "allowed/repo"), home);
      await mount(join(world.directory, "allowed/repo"), `${home}/work`);
      rmSync(join(world.home, ".codex"), { recursive: true });
      expect(readdirSync(join(world.directory, "allowed/repo")).toSorted()).toEqual(["file", "made"]);
    });

    test("is one of the allowed roots, by its own path or where it was asked for", async () => {
      const path = join(world.directory, "allowed/repo");
      const own = await mount(path, "/workspace");
      expect(own).toMatchObject({ status: 0, stdout: "/workspace\nallowed\n" });
      expect(own.stderr).toContain(`podbot: ${path} is mounted at /workspace, read-write\n`);
      expect(readFileSync(join(path, "made"), "utf8")).toBe("made\n");
      const linked = await mount(join(world.directory, "allowed/link"), "/srv/other");
      expect(linked).toMatchObject({ status: 0, stdout: "/srv/other\nallowed\n" });
      expect(linked.stderr).toContain(`podbot: ${path} is mounted at /srv/other, read-write\n`);
    });

    const outside = [
      ["lies elsewhere", "elsewhere"],
      ["only begins like an allowed one", "allowed-not"],
      ["lies above", "."],
      ["is a link that leads out", "allowed/escape"],
      ["leads out by its dots", "allowed/../elsewhere"],
    ] as const;
    // No engine hears of these: one of them is enough where all of them are tried elsewhere.
    test.each(outside.slice(isWhole ? 0 : 4))("is refused where it %s, before anything is made", async (_why, path) => {
      const { status, stdout, stderr } = await mount(`${world.directory}/${path}`, "/workspace");
      expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
      expect(stderr).toContain("MOUNT_REFUSED");
      if (path === "allowed/escape") expect(stderr).toContain(join(world.directory, "elsewhere"));
      expect(world.containers()).toEqual([]);
      expect(existsSync(join(world.directory, "elsewhere/made"))).toBe(false);
    });

    const shut = [
      home,
      `${home}/.codex`,
      "/",
      "/etc",
      "/proc/x",
      "/run/podbot/in",
      "/usr/bin",
      "/root/.claude",
      "/dev/shm",
      "/tmp",
      "relative",
      "/a/../etc",
    ];
    // Homes differ; the rest does not.
    test.each(shut.slice(0, isWhole ? shut.length : 2))("is not mounted at %s", async (target) => {
      const { status, stdout, stderr } = await mount(join(world.directory, "allowed/repo"), target);
      expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
      expect(stderr).toMatch(/MOUNT_REFUSED|CONFIG_INVALID/);
      expect(world.containers()).toEqual([]);
    });

    test("is refused where another has taken its place since it was looked at", async () => {
      const victim = join(world.directory, "victim");
      world.file("victim/file", "secret\n");
      // So that all that is mounted below finds a place.
      world.file("victim/.podbot/kept");
      const swap = () => {
        renameSync(world.project, `${world.project}-moved`);
        symlinkSync(victim, world.project);
      };
      const restore = () => {
        rmSync(world.project);
        renameSync(`${world.project}-moved`, world.project);
      };
      rmSync(join(world.home, ".config"), { recursive: true, force: true });
      // Between the plan and the start.
      const planned = await world.plan();
      swap();
      await expect(startSession(planned)).rejects.toMatchObject({ code: "PATH_CHANGED" });
      expect(world.containers()).toEqual([]);
      restore();
      // At the last moment: after Podbot has looked, and before the engine does.
      await using proxy = await openProxy(world, engine.socket, (line) => {
        if (/^POST \S+\/start/.test(line)) swap();
      });
      const again = await world.plan({ engine_socket: proxy.path });
      const outcome = startSession(again).then(async (session) => {
        const seen = await session.sandbox.exec({ argv: ["cat", "file"] });
        seen.stdin.end();
        const said = await text(seen.stdout);
        await session[Symbol.asyncDispose]();
        return said;
      });
      await expect(outcome).rejects.toMatchObject({
        code: "PATH_CHANGED",
        hint: expect.stringContaining("Nothing was started"),
      });
      restore();
      await eventually(() => expect(world.containers()).toEqual([]));
      // Without a thief it is the same as ever.
      await using session = await startSession(await world.plan());
      expect(world.containers()).toEqual([`podbot-${session.id}`]);
    });
  });
}

/** No container, no process, no record and no directory of a session; what is known of the engine may stay. */
async function expectNoTrace(world: EngineWorld): Promise<void> {
  await eventually(() => {
    expect(world.containers()).toEqual([]);
    expect(sessionsOf(world).filter((name) => name !== "engines")).toEqual([]);
    expect(processesOf(world)).toEqual([]);
  });
}

/** The flags that name the engine and its image. */
function on({ engine }: EngineWorld): readonly string[] {
  return ["--engine-socket", engine.socket, "--image", engine.image];
}

function shell(world: EngineWorld, script: string): Promise<Result> {
  return podbot(world, ["run", "--quiet", "--agent", "custom", ...on(world), "--", "sh", "-c", script]);
}

/** What the engine's own command line needs to find the engine. */
function commandEnvironment({ caller, env }: TestEngine): NodeJS.ProcessEnv {
  return { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LANG: "C.UTF-8", HOME: caller.home, USER: caller.user, ...env };
}
