import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { eventually } from "../eventually.ts";
import { program, type World } from "../world.ts";
import { expectNothingLeft, processesOf, sessionsOf, sessionWorld, startDetached } from "./terminal/remains.ts";

function run(world: World, command: readonly string[], ...flags: string[]) {
  return world.podbot(["run", "--agent", "custom", ...flags, "--", ...command]);
}

/** The built program, until its command has said `go`. */
async function running(world: World, script: string, ...flags: string[]) {
  const child = world.spawn(["run", "--agent", "custom", ...flags, "--", "sh", "-c", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  await eventually(() => expect(said).toContain("go\n"));
  return { child, ended: once(child, "close").then(([code, signal]) => ({ code, signal, said })) };
}

describe("podbot run", () => {
  test.each([0, 1, 7, 126, 255])("ends with the command's own status, %i, and leaves nothing", async (status) => {
    const world = sessionWorld();
    const outcome = await run(world, ["sh", "-c", `echo out; echo err >&2; exit ${status}`]);
    expect(outcome).toEqual({ status, stdout: "out\n", stderr: "err\n" });
    await expectNothingLeft(world);
  });

  test("ends with 127 and 126 where the command cannot be started", async () => {
    const world = sessionWorld();
    world.file("home/project/plain", "text", 0o644);
    const missing = await run(world, ["no-such-program"]);
    expect(missing.stderr).toContain("COMMAND_NOT_FOUND");
    expect(missing.status).toBe(127);
    const plain = await run(world, ["./plain"]);
    expect(plain.stderr).toContain("COMMAND_NOT_EXECUTABLE");
    expect(plain.status).toBe(126);
    await expectNothingLeft(world);
  });

  test("ends with 128 + n where signal n ended the command", async () => {
    const world = sessionWorld();
    expect((await run(world, ["sh", "-c", "kill -TERM $$"])).status).toBe(143);
    expect((await run(world, ["sh", "-c", "kill -KILL $$"])).status).toBe(137);
  });

  test("ends a command whose time is over, with 124", async () => {
    const world = sessionWorld();
    const outcome = await run(world, ["sh", "-c", "echo begun; sleep 300"], "--timeout", "3s");
    expect(outcome).toEqual({ status: 124, stdout: "begun\n", stderr: "" });
    await expectNothingLeft(world);
  });

  test.each(["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"] as const)("passes %s on", async (signal) => {
    const world = sessionWorld();
    const name = signal.slice(3);
    const { child, ended } = await running(
      world,
      `trap 'echo got ${name}; exit 9' ${name}; echo go; while :; do sleep 0.1; done`,
    );
    child.kill(signal);
    expect(await ended).toEqual({ code: 9, signal: null, said: `go\ngot ${name}\n` });
    await expectNothingLeft(world);
  });

  test.each(["SIGTERM", "SIGINT"] as const)(
    "leaves nothing when %s comes at any moment of its start",
    async (signal) => {
      const world = sessionWorld();
      for (const delayMs of [30, 60, 90, 120, 150, 180, 220, 260, 300]) {
        const child = world.spawn(["run", "--agent", "custom", "--", "sleep", "300"], { stdio: "ignore" });
        const ended = once(child, "close");
        await new Promise((resolve) => setTimeout(resolve, delayMs));
        child.kill(signal);
        await ended;
        await expectNothingLeft(world);
      }
    },
  );

  test("leaves nothing of a background process that does not want to end", async () => {
    const world = sessionWorld();
    world.file("home/.config/podbot/config.toml", "[sandbox]\ngrace_seconds = 1\n");
    const outcome = await run(world, ["sh", "-c", `(trap '' TERM HUP; while :; do sleep 1; done) & echo over`]);
    expect(outcome).toEqual({ status: 0, stdout: "over\n", stderr: "" });
    await expectNothingLeft(world);
  });

  test("is killed without leaving a process; what is left on the disk, stop removes", async () => {
    const world = sessionWorld();
    const { child, ended } = await running(world, "echo go; sleep 300");
    child.kill("SIGKILL");
    await ended;
    await eventually(() => expect(processesOf(world)).toEqual([]));
    const [session] = JSON.parse((await world.podbot(["ps", "--json"])).stdout);
    expect(session).toMatchObject({ state: "died", command: ["sh", "-c", "echo go; sleep 300"] });
    expect((await world.podbot(["stop", session.id])).status).toBe(0);
    await expectNothingLeft(world);
  });

  test("carries 100 MiB of input through unchanged", async () => {
    const world = sessionWorld();
    const child = world.spawn(["run", "--agent", "custom", "--", "cat"], { stdio: ["pipe", "pipe", "inherit"] });
    const block = randomBytes(1024 * 1024);
    const sent = createHash("sha256");
    const received = createHash("sha256");
    child.stdout?.on("data", (bytes: Buffer) => received.update(bytes));
    for (let count = 0; count < 100; count++) {
      block.writeUInt32LE(count);
      sent.update(block);
      if (!child.stdin?.write(Buffer.from(block))) await once(child.stdin as NodeJS.WritableStream, "drain");
    }
    child.stdin?.end();
    const [status] = await once(child, "close");
    expect(status).toBe(0);
    expect(received.digest("hex")).toBe(sent.digest("hex"));
    await expectNothingLeft(world);
  });

  test("works where it is told to: --workspace, --cwd, or here", async () => {
    const world = sessionWorld();
    mkdirSync(join(world.home, "other"));
    expect((await run(world, ["pwd"])).stdout).toBe(`${world.project}\n`);
    for (const flag of ["--workspace", "--cwd", "-C"]) {
      const outcome = await run(world, ["sh", "-c", "pwd; echo made >it"], flag, "../other");
      expect(outcome.stdout).toBe(`${world.home}/other\n`);
      expect(readFileSync(join(world.home, "other", "it"), "utf8")).toBe("made\n");
    }
    expect(await run(world, ["true"], "--workspace", "../missing")).toMatchObject({ status: 2 });
    expect(readdirSync(world.project)).toEqual([]);
  });

  test("sets and passes variables, and no others", async () => {
    const world = sessionWorld();
    Object.assign(world.env, { WANTED: "by name", HIDDEN: "secret" });
    const outcome = await run(world, ["env"], "--env", "WANTED", "--env", "SET=as said");
    expect(outcome.stdout).toContain("WANTED=by name\n");
    expect(outcome.stdout).toContain("SET=as said\n");
    expect(outcome.stdout).not.toContain("HIDDEN");
    expect(world.outside("env").stdout).toContain("HIDDEN=secret");
  });

  test("only shows what it would do, with --dry-run", async () => {
    const world = sessionWorld();
    const script = await run(world, ["touch", "made"], "--dry-run");
    expect(script.status).toBe(0);
    expect(script.stdout).toMatch(/^#!.*bash\n/);
    expect(script.stdout).toContain("bwrap");
    const plan = JSON.parse((await run(world, ["touch", "made"], "--dry-run", "--json")).stdout);
    expect(plan).toMatchObject({ command: ["touch", "made"], cwd: world.project });
    expect(readdirSync(world.project)).toEqual([]);
    await expectNothingLeft(world);
  });
});

describe("an agent", () => {
  const claude = '#!/bin/sh\necho "claude got $# words: $*"; exit 3\n';

  function worldWith(name: string, script: string): World {
    const world = sessionWorld();
    world.file(`bin/${name}`, script, 0o755);
    world.env["PATH"] = `${world.directory}/bin:${world.env["PATH"]}`;
    return world;
  }

  test("that is known and on PATH runs with the words after --, and is told to ask for nothing", async () => {
    const world = worldWith("claude", claude);
    const outcome = await world.podbot(["run", "--agent", "claude", "--", "--print", "a b"]);
    const stdout = "claude got 3 words: --dangerously-skip-permissions --print a b\n";
    expect(outcome).toMatchObject({ status: 3, stdout });
    world.file("home/.config/podbot/config.toml", '[agent]\nkind = "claude"\npermissive = false\n');
    expect((await world.podbot(["run", "--", "--print", "a b"])).stdout).toBe("claude got 2 words: --print a b\n");
  });

  test("that is known is kept quiet, unless the owner says otherwise", async () => {
    const world = worldWith("claude", '#!/bin/sh\necho "$DISABLE_AUTOUPDATER $ANTHROPIC_API_KEY"\n');
    Object.assign(world.env, { DISABLE_AUTOUPDATER: "0", ANTHROPIC_API_KEY: "secret" });
    const said = async (...flags: string[]) => (await world.podbot(["run", "--agent", "claude", ...flags])).stdout;
    expect(await said()).toBe("1 \n");
    expect(await said("--env", "DISABLE_AUTOUPDATER", "--env", "ANTHROPIC_API_KEY")).toBe("0 secret\n");
    expect(await said("--env", "DISABLE_AUTOUPDATER=never")).toBe("never \n");
  });

  test("that is known but not installed is named with the way to get it", async () => {
    const world = sessionWorld();
    const outcome = await world.podbot(["run", "--agent", "claude", "--json"]);
    expect(outcome.status).toBe(127);
    const { error } = JSON.parse(outcome.stderr);
    expect(error.code).toBe("AGENT_MISSING");
    expect(error.hint).toContain("claude-code");
    expect(error.hint).toContain("podbot image build --agents claude");
    await expectNothingLeft(world);
  });

  test("that is known is announced in one line, and told of where it cannot reach its model", async () => {
    const world = worldWith("claude", "#!/bin/sh\necho done\n");
    const said = (...flags: string[]) => world.podbot(["run", "--agent", "claude", ...flags]);
    expect(await said("--network", "open")).toEqual({
      status: 0,
      stdout: "done\n",
      stderr: `podbot: Claude Code works on ${world.project} behind bubblewrap, with the machine's network\n`,
    });
    const { stderr: judged } = await said("--network", "allowlist");
    expect(judged).toContain("behind bubblewrap, with 2 hosts in reach\n");
    expect(judged).toMatch(
      /^podbot: any key is let through to [a-z., ]+, another account's too; creds\.mode = "masked"/m,
    );
    expect((await said("--network", "learn")).stderr).toContain("behind bubblewrap, and what it reaches is noted\n");
    expect((await said()).stderr).toContain("behind bubblewrap, with 2 hosts in reach\n");
    world.file("home/.config/podbot/config.toml", '[creds]\nmode = "masked"\n');
    expect((await said()).stderr).not.toContain("any key");
    const { stderr } = await said("--network", "none");
    expect(stderr).toMatch(/^podbot: warning: Claude Code cannot reach its model: .* --network allowlist/m);
    expect(stderr).toContain(`podbot: Claude Code works on ${world.project} behind bubblewrap, without network\n`);
    expect(await said("--quiet")).toEqual({ status: 0, stdout: "done\n", stderr: "" });
  });

  test("that is configured to be a server is run itself only if the caller says so", async () => {
    const world = worldWith("codex", "#!/bin/sh\necho itself\n");
    world.file("home/.config/podbot/config.toml", '[agent]\nkind = "codex"\nmode = "acp"\n');
    const refused = await world.podbot(["run", "--quiet"]);
    expect(refused).toMatchObject({ status: 2, stdout: "", stderr: expect.stringContaining('agent.mode = "acp"') });
    const told = await world.podbot(["run", "--quiet", "--agent-mode", "podbot"]);
    expect(told).toEqual({ status: 0, stdout: "itself\n", stderr: "" });
    expect((await world.podbot(["run", "--agent-mode", "pod"])).status).toBe(2);
  });

  test("that is not installed here but was put into Podbot's own image is run there", async () => {
    const world = sessionWorld();
    world.env["DOCKER_HOST"] = `unix://${world.directory}/nobody.sock`;
    world.file("home/.local/state/podbot/image.json", '{"agents":["claude"]}\n');
    const code = async (agent: string) =>
      JSON.parse((await world.podbot(["run", "--agent", agent, "--json"])).stderr).error.code;
    expect(await code("claude")).toMatch(/^ENGINE_/);
    expect(await code("codex")).toBe("AGENT_MISSING");
    world.file("home/.local/state/podbot/image.json", "damaged");
    expect(await code("claude")).toBe("AGENT_MISSING");
  });

  test("that is unknown is refused, with those that are known", async () => {
    const world = sessionWorld();
    const outcome = await world.podbot(["run", "--agent", "clod", "--json"]);
    expect(outcome.status).toBe(2);
    const { error } = JSON.parse(outcome.stderr);
    expect(error.code).toBe("AGENT_UNKNOWN");
    expect(error.hint).toContain("claude");
  });

  test("of the configuration runs with its arguments and variables", async () => {
    const world = sessionWorld();
    world.env["AGENT_KEY"] = "for the agent";
    world.env["OTHER_KEY"] = "for nobody";
    world.file(
      "home/.config/podbot/config.toml",
      '[agent]\nkind = "custom"\ncommand = "sh"\nargs = ["-c", "echo $1 $AGENT_KEY $OTHER_KEY", "sh", "word"]\nenv_allowlist = ["AGENT_*"]\n',
    );
    expect(await world.podbot(["run"])).toEqual({ status: 0, stdout: "word for the agent\n", stderr: "" });
    // What is given here is given whole.
    expect((await run(world, ["echo", "another"])).stdout).toBe("another\n");
  });

  test("without a command is a mistake of the caller's", async () => {
    const world = sessionWorld();
    expect(await world.podbot(["run", "--agent", "custom"])).toMatchObject({ status: 2 });
    await expectNothingLeft(world);
  });
});

describe("podbot run --detach", () => {
  test("prints the id; ps knows the session, logs what it says, stop removes it", async () => {
    const world = sessionWorld();
    const id = startDetached(world, ["sh", "-c", "echo said; while :; do sleep 1; done"]);
    const [session] = JSON.parse((await world.podbot(["ps", "--json"])).stdout);
    expect(session).toMatchObject({
      id,
      state: "running",
      agent: "custom",
      command: ["sh", "-c", "echo said; while :; do sleep 1; done"],
      cwd: world.project,
      detached: true,
      wall: "bubblewrap",
      exit: null,
      endedAt: null,
    });
    expect(Number.isNaN(Date.parse(session.createdAt))).toBe(false);
    expect(() => process.kill(session.keeper, 0)).not.toThrow();
    await eventually(async () => expect((await world.podbot(["logs", id])).stdout).toBe("said\n"));
    expect(await world.podbot(["stop", id])).toEqual({ status: 0, stdout: `${id}\n`, stderr: "" });
    await expectNothingLeft(world);
  });

  test("prints the session as JSON", async () => {
    const world = sessionWorld();
    const outcome = await run(world, ["sleep", "300"], "--detach", "--json");
    expect(outcome.status).toBe(0);
    expect(JSON.parse(outcome.stdout)).toMatchObject({ command: ["sleep", "300"], cwd: world.project, warnings: [] });
  });

  test("leaves a session that ends by itself with its status and its log, until it is stopped", async () => {
    const world = sessionWorld();
    const id = startDetached(world, ["sh", "-c", "echo last words; exit 5"]);
    await eventually(async () => expect((await world.podbot(["ps"])).stdout).toContain("ended (5)"));
    await eventually(() => expect(processesOf(world)).toEqual([]));
    expect(await world.podbot(["logs", id])).toEqual({ status: 0, stdout: "last words\n", stderr: "" });
    expect(readdirSync(join(world.directory, "run", "podbot"))).toEqual([]);
    expect((await world.podbot(["stop", id])).status).toBe(0);
    await expectNothingLeft(world);
  });

  test("says an id for each of many sessions that end at once", async () => {
    const world = sessionWorld();
    const outcomes = await Promise.all(
      Array.from({ length: 6 }, async (_, number) => {
        const cwd = join(world.home, `project-${number}`);
        mkdirSync(cwd);
        const child = world.spawn(["run", "--detach", "--agent", "custom", "--", "true"], {
          cwd,
          stdio: ["ignore", "pipe", "inherit"],
        });
        let said = "";
        child.stdout?.on("data", (text: Buffer) => {
          said += text;
        });
        const [status] = await once(child, "close");
        expect(status).toBe(0);
        return said.trim();
      }),
    );
    expect(new Set(outcomes).size).toBe(6);
    expect([...sessionsOf(world)].sort()).toEqual([...outcomes].sort());
  });

  test.each([
    [["/no/such/program"], 127, "COMMAND_NOT_FOUND"],
    [["/etc"], 126, "COMMAND_NOT_EXECUTABLE"],
  ] as const)("shows why %j cannot be started, and leaves no record", async (command, status, code) => {
    const world = sessionWorld();
    const outcome = await run(world, command, "--detach");
    expect(outcome).toMatchObject({ status, stdout: "" });
    expect(outcome.stderr).toContain(`podbot: error:`);
    expect(outcome.stderr).toContain(code);
    await expectNothingLeft(world);
  });

  test.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("that %s calls off, whenever it comes, leaves no session without an id", async (signal, status) => {
    const world = sessionWorld();
    const announced: string[] = [];
    for (let delayMs = 10; delayMs <= 400; delayMs += 15) {
      const child = world.spawn(["run", "-q", "-d", "--agent", "custom", "--", "sleep", "300"]);
      const said = { stdout: "", stderr: "" };
      child.stdout?.on("data", (bytes) => (said.stdout += bytes));
      child.stderr?.on("data", (bytes) => (said.stderr += bytes));
      const closed = once(child, "close");
      await wait(delayMs);
      child.kill(signal);
      const ended = { end: (await closed).find((one) => one !== null), ...said };
      // A process that has barely begun ends by the signal itself.
      expect(ended).toMatchObject({ end: expect.toBeOneOf([0, status, signal]), stderr: "" });
      if (said.stdout !== "") announced.push(said.stdout.trim());
      else expect(ended.end).not.toBe(0);
    }
    const listed = JSON.parse((await world.podbot(["ps", "--json"])).stdout) as { id: string; state: string }[];
    expect(listed.filter(({ id }) => !announced.includes(id))).toEqual([]);
    expect(listed).toHaveLength(announced.length);
    for (const id of announced) expect((await world.podbot(["stop", id])).status).toBe(0);
    await expectNothingLeft(world);
  });

  test("outlives the caller and the caller's terminal session", async () => {
    const world = sessionWorld();
    const words = [process.execPath, program, "run", "-d", "--agent", "custom", "--", "sleep", "300"];
    // A session of its own, all of which is hung up as when its terminal is closed.
    const shell = spawn("setsid", ["--wait", "sh", "-c", '"$@"; trap "" HUP; kill -HUP 0', "sh", ...words], {
      cwd: world.project,
      env: world.env as NodeJS.ProcessEnv,
      stdio: ["ignore", "pipe", "inherit"],
    });
    let id = "";
    shell.stdout.on("data", (text: Buffer) => {
      id += text;
    });
    await once(shell, "close");
    const [session] = JSON.parse((await world.podbot(["ps", "--json"])).stdout);
    expect(session).toMatchObject({ id: id.trim(), state: "running" });
    expect((await world.podbot(["exec", id.trim(), "--", "echo", "alive"])).stdout).toBe("alive\n");
  });

  test("ends the agent when its time is over", async () => {
    const world = sessionWorld();
    startDetached(world, ["sleep", "300"], "--timeout", "500ms");
    await eventually(async () => expect((await world.podbot(["ps"])).stdout).toContain("ended (124)"));
  });
});
