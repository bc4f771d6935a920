import type { ChildProcess } from "node:child_process";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, existsSync, openSync, readdirSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { describe, expect, test } from "vitest";
import { eventually } from "../eventually.ts";
import { openEditor, type Wire } from "../host/editor.ts";
import { stubWords, writeStub } from "../host/stub.ts";
import { program, type World } from "../world.ts";
import { expectNothingLeft, processesOf, sessionsOf, sessionWorld } from "./terminal/remains.ts";

interface Hosting extends Wire {
  readonly child: ChildProcess;
  readonly stderr: () => string;
  readonly ended: Promise<number | null>;
}

/** The built program with the stub, on pipes as an editor has them. */
function host(world: World, flags: readonly string[] = [], stub: readonly string[] = []): Hosting {
  writeStub(world);
  const words = ["host", "--agent", "custom", "--network", "none", ...flags, "--", ...stubWords, ...stub];
  return attach(world.spawn(words, { stdio: "pipe" }));
}

function attach(child: ChildProcess): Hosting {
  let said = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  child.stdin?.on("error", () => {});
  return {
    child,
    readable: child.stdout as Readable,
    writable: child.stdin as Writable,
    stderr: () => said,
    ended: once(child, "close").then(([status]) => status as number | null),
  };
}

const command = (...words: readonly unknown[]) => JSON.stringify(words);

/** Resolves when the agent has answered. */
async function started({ readable, writable }: Wire): Promise<void> {
  writable.write('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n');
  await once(readable, "data");
}

/** The session that is there. */
async function onlySession(world: World): Promise<{ readonly id: string }> {
  return eventually(() => {
    const [id, ...others] = sessionsOf(world);
    expect(others).toEqual([]);
    expect(id).toBeDefined();
    return { id: id as string };
  });
}

function journalOf(world: World, id: string): readonly Record<string, unknown>[] {
  const path = join(world.home, ".local/state/podbot/sessions", id, "journal.jsonl");
  return readFileSync(path, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

describe("podbot host", () => {
  test("lets an unmodified client work with an agent behind the wall, and keeps the client's machine out of it", async () => {
    const world = sessionWorld();
    const secret = world.file("home/secret.txt", "of the owner's\n");
    const hosting = host(world);
    const editor = openEditor();
    const seen = await editor.speak(hosting, async (context) => {
      await editor.initialize(context);
      const { sessionId } = await context.request("session/new", { cwd: world.project, mcpServers: [] });
      const asking = (method: string, params: object) =>
        editor.turn(context, sessionId, command("ask", method, { sessionId, ...params }));
      return {
        where: JSON.parse(await editor.turn(context, sessionId, command("where"))),
        read: JSON.parse(await asking("fs/read_text_file", { path: secret })),
        again: JSON.parse(await asking("fs/read_text_file", { path: secret })),
        run: JSON.parse(await asking("terminal/create", { command: "id" })),
        told: await editor.turn(context, sessionId, command("tell", "terminal/create", { command: "id" })),
        written: await editor.turn(context, sessionId, command("write", "made.txt", "inside\n")),
      };
    });
    expect(await hosting.ended).toBe(0);
    expect(seen.where).toMatchObject({ cwd: world.project, sessions: [{ cwd: world.project, mcpServers: [] }] });
    expect(seen.where.seen ?? {}).not.toHaveProperty("fs");
    expect(seen.where.seen ?? {}).not.toHaveProperty("terminal");
    const denied = (method: string) => ({
      error: {
        code: -32001,
        message: "Method blocked by Podbot ACP capability policy",
        data: { method, reason: "podbot_capability_policy" },
      },
    });
    expect([seen.read, seen.again, seen.run]).toEqual([
      denied("fs/read_text_file"),
      denied("fs/read_text_file"),
      denied("terminal/create"),
    ]);
    expect(editor.asked).toEqual([]);
    expect(readFileSync(join(world.project, "made.txt"), "utf8")).toBe("inside\n");
    const lines = hosting.stderr().split("\n");
    expect(lines.filter((line) => line.includes("fs/read_text_file"))).toHaveLength(1);
    expect(lines.filter((line) => line.includes("denied the agent's request terminal/create"))).toHaveLength(1);
    expect(lines.filter((line) => line.includes("dropped the agent's notification terminal/create"))).toHaveLength(1);
    await expectNothingLeft(world);
  });

  test("stands between the two: without it, the same agent has the client read what it cannot", async () => {
    const world = sessionWorld();
    const secret = world.file("home/secret.txt", "of the owner's\n");
    writeStub(world);
    const bare = attach(spawn(stubWords[0], stubWords.slice(1), { cwd: world.project, stdio: "pipe" }));
    const editor = openEditor();
    const read = await editor.speak(bare, async (context) => {
      await editor.initialize(context);
      const { sessionId } = await context.request("session/new", { cwd: world.project, mcpServers: [] });
      return editor.turn(context, sessionId, command("ask", "fs/read_text_file", { sessionId, path: secret }));
    });
    expect(JSON.parse(read)).toEqual({ result: { content: "of the owner's\n" } });
    expect(editor.asked).toEqual(["fs/read_text_file"]);
    expect(await bare.ended).toBe(0);
  });

  test("opens no directory that a session is said to work in, nor others that are added to it", async () => {
    const world = sessionWorld();
    const other = join(world.home, "other");
    world.file("home/other/.ssh/key", "of the owner's\n");
    world.file("home/.ssh/key", "of the owner's\n");
    const hosting = host(world);
    const editor = openEditor();
    const tried = await editor.speak(hosting, async (context) => {
      await editor.initialize(context);
      const added = { additionalDirectories: [join(world.home, ".ssh"), "/"] };
      const { sessionId } = await context.request("session/new", { cwd: other, mcpServers: [], ...added });
      const turn = (...words: unknown[]) => editor.turn(context, sessionId, command(...words));
      return {
        where: JSON.parse(await turn("where")),
        tries: JSON.parse(
          await turn("try", ["write", join(other, "made.txt"), "x"], ["read", join(world.home, ".ssh/key")]),
        ),
        made: await turn("write", "made.txt", "inside\n"),
      };
    });
    expect(await hosting.ended).toBe(0);
    expect(tried.where.cwd).toBe(world.project);
    expect(tried.where.sessions[0].cwd).toBe(other);
    expect(tried.tries).toEqual(["EROFS", "ENOENT"]);
    expect(tried.made).toBe("written");
    expect(existsSync(join(other, "made.txt"))).toBe(false);
  });

  test.each([
    ["--acp-delegation", {}],
    ["PODBOT_ACP_DELEGATION", { PODBOT_ACP_DELEGATION: "allow_fs" }],
  ])("lets through what the owner delegates by %s, says so in any case, and writes it down", async (way, env) => {
    const world = sessionWorld();
    Object.assign(world.env, env);
    const file = world.file("home/shared.txt", "shared\n");
    const flags = way.startsWith("--") ? [way, "allow_fs"] : [];
    const hosting = host(world, ["--quiet", "--agent-mode", "acp", ...flags]);
    const editor = openEditor();
    const seen = await editor.speak(hosting, async (context) => {
      await editor.initialize(context);
      const { sessionId } = await context.request("session/new", { cwd: world.project, mcpServers: [] });
      const { id } = await onlySession(world);
      const read = await editor.turn(
        context,
        sessionId,
        command("ask", "fs/read_text_file", { sessionId, path: file }),
      );
      const run = await editor.turn(
        context,
        sessionId,
        command("ask", "terminal/create", { sessionId, command: "id" }),
      );
      return { read, run, journal: journalOf(world, id) };
    });
    expect(JSON.parse(seen.read)).toEqual({ result: { content: "shared\n" } });
    expect(JSON.parse(seen.run)).toMatchObject({ error: { code: -32001 } });
    expect(await hosting.ended).toBe(0);
    expect(hosting.stderr()).toMatch(
      /^podbot: trust boundary: acp\.delegation = "allow_fs" \(.*\): the agent may .*\n$/,
    );
    expect(seen.journal.filter(({ kind }) => kind === "note").map(({ text }) => text)).toEqual([
      expect.stringContaining('trust boundary: acp.delegation = "allow_fs"'),
      "hid clientCapabilities.terminal from the agent",
      "denied the agent's request terminal/create: it would act on the client's machine",
    ]);
  });

  test("carries large messages unchanged", async () => {
    const world = sessionWorld();
    const hosting = host(world, ["--quiet"]);
    const editor = openEditor();
    const size = 20 * 1024 * 1024;
    const said = await editor.speak(hosting, async (context) => {
      await editor.initialize(context);
      const { sessionId } = await context.request("session/new", { cwd: world.project, mcpServers: [] });
      await editor.turn(context, sessionId, command("write", "large.txt", "y".repeat(size)));
      return editor.turn(context, sessionId, command("big", size));
    });
    expect(said === "x".repeat(size)).toBe(true);
    expect(readFileSync(join(world.project, "large.txt"), "utf8") === "y".repeat(size)).toBe(true);
    expect(await hosting.ended).toBe(0);
    expect(hosting.stderr()).toBe("");
  });

  test("passes the agent's standard error on as it is, and keeps it for logs, but not the protocol", async () => {
    const world = sessionWorld();
    const hosting = host(world, ["--quiet"]);
    const editor = openEditor();
    const complaint = "\u001b[31mred\u001b[0m\ttab \u0007\n";
    const logs = await editor.speak(hosting, async (context) => {
      await editor.initialize(context);
      const { sessionId } = await context.request("session/new", { cwd: world.project, mcpServers: [] });
      await editor.turn(context, sessionId, command("stderr", complaint));
      const { id } = await onlySession(world);
      const listed = await world.podbot(["ps", "--json"]);
      const beside = await world.podbot(["exec", id, "--", "sh", "-c", "echo beside; pwd"]);
      const told = await eventually(async () => {
        const { stdout } = await world.podbot(["logs", "--json", id]);
        expect(stdout).toContain("tab");
        return stdout;
      });
      return {
        listed: JSON.parse(listed.stdout),
        beside,
        told: told
          .trim()
          .split("\n")
          .map((line) => JSON.parse(line)),
      };
    });
    expect(await hosting.ended).toBe(0);
    expect(hosting.stderr()).toBe(complaint);
    expect(logs.listed).toMatchObject([{ agent: "custom", state: "running" }]);
    expect(logs.beside).toEqual({ status: 0, stderr: "", stdout: `beside\n${world.project}\n` });
    expect(new Set(logs.told.map(({ stream }) => stream))).toEqual(new Set(["stderr"]));
    const text = logs.told.map((entry) => entry.text).join("");
    expect(text).toBe(`podbot: hid clientCapabilities.fs, clientCapabilities.terminal from the agent\n${complaint}`);
  });

  test("goes on although nobody reads its standard error", async () => {
    const world = sessionWorld();
    const child = host(world);
    child.child.stderr?.removeAllListeners("data").pause();
    const editor = openEditor();
    await editor.speak(child, async (context) => {
      await editor.initialize(context);
      const { sessionId } = await context.request("session/new", { cwd: world.project, mcpServers: [] });
      for (let count = 0; count < 40; count++)
        await editor.turn(context, sessionId, command("stderr", "x".repeat(100_000)));
      await editor.turn(context, sessionId, command("tell", "fs/write_text_file", {}));
      await editor.turn(context, sessionId, command("tell", "fs/read_text_file", {}));
    });
    expect((await once(child.child, "exit"))[0]).toBe(0);
    await expectNothingLeft(world);
    child.child.stderr?.resume();
  });

  test("speaks ACP unless it is told otherwise, and says so", async () => {
    const world = sessionWorld();
    const assumed = host(world);
    await started(assumed);
    assumed.writable.end();
    expect(await assumed.ended).toBe(0);
    expect(assumed.stderr()).toContain("podbot: it speaks the Agent Client Protocol: --agent-mode acp\n");
    const named = host(world, ["--agent-mode", "acp"]);
    await started(named);
    named.writable.end();
    expect(await named.ended).toBe(0);
    expect(named.stderr()).not.toContain("it speaks");
  });
});

describe("podbot host writes nothing to standard output but the agent's words", () => {
  const missing = "no-such-agent";
  test.each<[string, readonly string[], number, string]>([
    ["a flag that nobody knows", ["--no-such-flag"], 2, "USAGE"],
    ["a flag without its value", ["--agent"], 2, "USAGE"],
    ["an agent that nobody knows", ["--agent", "nobody"], 2, "AGENT_UNKNOWN"],
    ["a mode that nobody knows", ["--agent", "codex", "--agent-mode", "smoke"], 2, "CONFIG_INVALID"],
    ["a mode for terminals", ["--agent", "codex", "--agent-mode", "podbot"], 2, "podbot run"],
    [
      "a mode that the agent does not have",
      ["--agent", "claude", "--agent-mode", "codex_app_server"],
      2,
      "CONFIG_INVALID",
    ],
    ["a delegation that nobody knows", ["--acp-delegation", "allow_it"], 2, "USAGE"],
    [
      "a delegation in another protocol",
      ["--agent", "codex", "--agent-mode", "codex_app_server", "--acp-delegation", "allow_fs"],
      2,
      "acp.delegation",
    ],
    ["an agent that is not installed", ["--agent", "qwen"], 127, "npm install --global @qwen-code/qwen-code@"],
    ["an adapter that is not installed", ["--agent", "claude"], 127, "@agentclientprotocol/claude-agent-acp@0.99.0"],
    ["a custom agent without a command", ["--agent", "custom"], 2, "podbot"],
    ["a command that is not there", ["--agent", "custom", "--", missing], 127, "COMMAND_NOT_FOUND"],
    ["a workspace that is not there", ["--agent", "custom", "--workspace", "nowhere", "--", "cat"], 2, "nowhere"],
    [
      "an engine that is not there",
      ["--engine-socket", "unix:///nowhere", "--image", "i", "--agent", "custom", "--", "cat"],
      125,
      "nowhere",
    ],
    ["a network that nobody knows", ["--network", "web", "--agent", "custom", "--", "cat"], 2, "USAGE"],
  ])("for %s", async (_what, words, status, part) => {
    const world = sessionWorld();
    for (const flags of [[], ["--json"], ["--quiet"]]) {
      const outcome = await world.podbot(["host", ...flags, ...words]);
      expect({ ...outcome, stderr: "" }).toEqual({ status, stdout: "", stderr: "" });
      expect(outcome.stderr).toContain(part);
      if (flags.includes("--json"))
        expect(JSON.parse(outcome.stderr.trim().split("\n").at(-1) as string)).toHaveProperty("error");
    }
  });

  test("for what a project may not ask for", async () => {
    const world = sessionWorld();
    world.file("home/project/.podbot/config.toml", '[acp]\ndelegation = "allow_all"\n');
    const outcome = await world.podbot(["host", "--agent", "custom", "--", "cat"]);
    expect(outcome).toMatchObject({ status: 2, stdout: "", stderr: expect.stringContaining("CONFIG_UNTRUSTED") });
    expect(outcome.stderr).toContain('acp.delegation = "allow_all"');
  });

  test("for what the agent prints that is no message", async () => {
    const world = sessionWorld();
    const hosting = attach(
      world.spawn([
        "host",
        "--agent",
        "custom",
        "--",
        "sh",
        "-c",
        'echo hello; echo \'{"jsonrpc":"2.0","method":"a"}\'; exit 4',
      ]),
    );
    let said = "";
    hosting.readable.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    expect(await hosting.ended).toBe(4);
    expect(said).toBe('{"jsonrpc":"2.0","method":"a"}\n');
    expect(hosting.stderr()).toContain("podbot: refused a message of the agent: ");
  });
});

describe("podbot host ends", () => {
  const short = (world: World, seconds: number) =>
    world.file("home/.config/podbot/config.toml", `[sandbox]\ngrace_seconds = ${seconds}\n`);

  test("with the agent's own status where that ends first", async () => {
    const world = sessionWorld();
    const hosting = host(world, [], ["--leaves"]);
    expect(await hosting.ended).toBe(7);
    await expectNothingLeft(world);
  });

  test("with the agent's own status where it ends with its input", async () => {
    const world = sessionWorld();
    for (const [stub, status] of [
      [[], 0],
      [["--fails"], 3],
    ] as const) {
      const hosting = host(world, [], stub);
      await started(hosting);
      hosting.writable.end();
      expect(await hosting.ended).toBe(status);
      await expectNothingLeft(world);
    }
  });

  test.each([
    ["does not care", ["--stays"]],
    ["ends with a status of its own", ["--stays", "--polite"]],
    ["wants to stay", ["--stays", "--deaf"]],
  ])("well where its input has ended and the agent %s", async (_what, stub) => {
    const world = sessionWorld();
    short(world, 1);
    const hosting = host(world, [], stub);
    await started(hosting);
    hosting.writable.end();
    expect(await hosting.ended).toBe(0);
    expect(hosting.stderr()).toContain("podbot: the client has finished and the agent has not: it is asked to end\n");
    await expectNothingLeft(world);
  });

  test.each([
    ["SIGTERM", 143],
    ["SIGHUP", 129],
    ["SIGINT", 130],
  ] as const)("by %s with %i, whatever the agent does, and leaves nothing", async (signal, status) => {
    for (const stub of [["--stays"], ["--stays", "--deaf", "--chats"]]) {
      const world = sessionWorld();
      short(world, 1);
      const hosting = host(world, [], stub);
      await started(hosting);
      hosting.child.kill(signal);
      expect(await hosting.ended).toBe(status);
      await expectNothingLeft(world);
    }
  });

  test.each(["pipes", "sockets"])("by SIGTERM although nobody reads what the agent says, on %s", async (kind) => {
    const world = sessionWorld();
    short(world, 1);
    writeStub(world);
    const words = [
      "host",
      "--quiet",
      "--agent",
      "custom",
      "--network",
      "none",
      "--",
      ...stubWords,
      "--stays",
      "--floods",
    ];
    const said = join(world.directory, "said");
    // Node gives its children sockets; a shell gives them pipes.
    const hosting =
      kind === "sockets"
        ? attach(world.spawn(words, { stdio: "pipe" }))
        : attach(
            spawn(
              "sh",
              ["-c", `mkfifo "$0"; exec 3<>"$0"; exec "$@" >"$0"`, said, process.execPath, program, ...words],
              {
                cwd: world.project,
                env: world.env as NodeJS.ProcessEnv,
                stdio: "pipe",
              },
            ),
          );
    await eventually(() => expect(agentsOf(world)).toHaveLength(1));
    await new Promise((resolve) => setTimeout(resolve, 500));
    hosting.child.kill("SIGTERM");
    expect(await hosting.ended).toBe(143);
    await expectNothingLeft(world);
  });

  test("at once where it is told twice", async () => {
    const world = sessionWorld();
    short(world, 600);
    const hosting = host(world, [], ["--stays", "--deaf"]);
    await started(hosting);
    hosting.child.kill("SIGTERM");
    hosting.child.kill("SIGTERM");
    expect(await hosting.ended).toBe(143);
    await expectNothingLeft(world);
  });

  test("with what killed an agent that says nothing more and does not end", async () => {
    const world = sessionWorld();
    short(world, 1);
    const hosting = host(world, [], ["--stays", "--mute"]);
    expect(await hosting.ended).toBe(143);
    expect(hosting.stderr()).toContain("podbot: the agent says nothing more and has not ended: it is asked to\n");
    await expectNothingLeft(world);
  });

  test("where the client is gone", async () => {
    const world = sessionWorld();
    short(world, 600);
    // It goes on to talk, so that nobody's listening is noticed; its input stays open.
    const hosting = host(world, [], ["--stays", "--chats"]);
    await started(hosting);
    hosting.readable.destroy();
    expect(await hosting.ended).toBe(0);
    expect(hosting.stderr()).toContain("podbot: nobody reads what the agent writes any more\n");
    await expectNothingLeft(world);
  });

  test.each(["SIGTERM", "SIGHUP"] as const)("by %s at any moment of its start, and leaves nothing", async (signal) => {
    const world = sessionWorld();
    for (const delayMs of [30, 60, 90, 120, 150, 180, 220, 260, 300]) {
      const hosting = host(world, ["--quiet"], ["--stays"]);
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      hosting.child.kill(signal);
      await hosting.ended;
      await expectNothingLeft(world);
    }
  });

  test("by podbot stop", async () => {
    const world = sessionWorld();
    const hosting = host(world, [], ["--stays"]);
    await started(hosting);
    const { id } = await onlySession(world);
    expect(await world.podbot(["stop", id])).toMatchObject({ status: 0 });
    // The box may be gone before it has told how the agent ended.
    expect([137, 143]).toContain(await hosting.ended);
    await expectNothingLeft(world);
  });
});

describe("what is killed while podbot host runs", () => {
  test("the keeper, at several moments: no process is left, and stop removes what is on the disk", async () => {
    const world = sessionWorld();
    for (const moment of ["starting", "started", "turning"] as const) {
      const hosting = host(world, ["--quiet"], ["--stays", ...(moment === "turning" ? ["--chats"] : [])]);
      if (moment === "starting") await onlySession(world);
      else await started(hosting);
      hosting.child.kill("SIGKILL");
      await hosting.ended;
      await eventually(() => expect(processesOf(world)).toEqual([]));
      expect((await world.podbot(["stop", "--all"])).status).toBe(0);
      await expectNothingLeft(world);
    }
  });

  test("the agent: its client is told by the status, and nothing is left", async () => {
    const world = sessionWorld();
    const hosting = host(world, ["--quiet"], ["--stays"]);
    await started(hosting);
    const [agent] = agentsOf(world);
    process.kill(Number(agent), "SIGKILL");
    expect(await hosting.ended).toBe(137);
    await expectNothingLeft(world);
  });

  test.each([
    ["the agent ends", "", ["--stays"]],
    [
      "the agent ends although it reads nothing",
      "child.stdin.write(Buffer.alloc(8e6, 32));",
      ["--stays", "--unreading"],
    ],
  ])("the client: %s and nothing is left", async (_what, more, stub) => {
    const world = sessionWorld();
    world.file("home/.config/podbot/config.toml", "[sandbox]\ngrace_seconds = 1\n");
    writeStub(world);
    const words = ["host", "--agent", "custom", "--quiet", "--", ...stubWords, ...stub];
    const script = `const { spawn } = require("node:child_process");
      const child = spawn(process.execPath, ${JSON.stringify([program, ...words])}, { stdio: ["pipe", "pipe", "ignore"] });
      child.stdin.write('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\\n');
      ${more}
      ${more === "" ? `child.stdout.once("data", () => console.log("answered"));` : `setTimeout(() => console.log("written"), 2000);`}`;
    const client = spawn(process.execPath, ["-e", script], {
      cwd: world.project,
      env: world.env as NodeJS.ProcessEnv,
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(client.stdout, "data");
    client.kill("SIGKILL");
    await expectNothingLeft(world);
  });
});

test("a client that lives on and closes its pipes is noticed although the agent reads nothing", async () => {
  const world = sessionWorld();
  world.file("home/.config/podbot/config.toml", "[sandbox]\ngrace_seconds = 1\n");
  writeStub(world);
  const pipes = ["in", "out"].map((name) => join(world.directory, name));
  spawnSync("mkfifo", pipes);
  const { O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY } = constants;
  const [inward, outward] = pipes.map((path) => openSync(path, O_RDWR | O_NONBLOCK)) as [number, number];
  const theirs = [openSync(pipes[0] as string, O_RDONLY), openSync(pipes[1] as string, O_WRONLY)] as const;
  const words = ["host", "--agent", "custom", "--network", "none", "--", ...stubWords, "--stays", "--unreading"];
  const child = world.spawn(words, { stdio: [...theirs, "ignore"] });
  for (const descriptor of theirs) closeSync(descriptor);
  await eventually(() => expect(agentsOf(world)).toHaveLength(1));
  const full = () => {
    try {
      for (;;) writeSync(inward, Buffer.alloc(4096, '{"jsonrpc":"2.0","method":"x"}\n'));
    } catch {}
  };
  for (let round = 0; round < 25; round += 1) {
    full();
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  // Somebody could still read: an agent may be as slow as it likes.
  expect(child.exitCode).toBeNull();
  const ended = once(child, "close");
  closeSync(inward);
  closeSync(outward);
  expect(await ended).toEqual([0, null]);
  await expectNothingLeft(world);
});

/** Processes of the stub. */
function agentsOf(world: World): readonly string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const { length } = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
        const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
        const isHere = readFileSync(`/proc/${pid}/environ`, "latin1").includes(world.directory);
        return length > 1 && words[1] === stubWords[1] && isHere;
      } catch {
        return false;
      }
    });
}
