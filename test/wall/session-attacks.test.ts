// @module-tag security
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { setImmediate as turn, setTimeout as wait } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { startSession } from "../../src/keeper/kept-session.ts";
import { planSandbox } from "../../src/keeper/sandbox.ts";
import { markOf } from "../../src/machine/process-mark.ts";
import { expectNothingLeft, sessionsOf, sessionWorld, startDetached, startIdle } from "../cli/terminal/remains.ts";
import { eventually, until } from "../eventually.ts";
import { below, expectClean, kill, listing, Machine } from "../faults/machine.ts";
import { openTerminal } from "../terminal.ts";
import { newWorld, type Outcome, program, type World } from "../world.ts";

const agent = ["--agent", "custom", "--"] as const;

/** The built program in a process of its own, to its end. */
async function podbot(world: World, words: readonly string[], options: Parameters<World["spawn"]>[1] = {}) {
  return outcomeOf(world.spawn(words, { stdio: ["ignore", "pipe", "pipe"], ...options }));
}

async function outcomeOf(child: ChildProcess): Promise<Outcome> {
  const said = [child.stdout, child.stderr].map((stream) => (stream === null ? "" : text(stream)));
  const [[status], stdout = "", stderr = ""] = await Promise.all([once(child, "close"), ...said]);
  return { status: (status as number | null) ?? -1, stdout, stderr };
}

/** Ends what a test has started, whatever comes of it. */
function endAfterwards(child: ChildProcess): void {
  onTestFinished(() => void child.kill("SIGKILL"));
}

function stateOf(world: World): string {
  return join(world.home, ".local/state/podbot");
}

function runtimeOf(world: World): string {
  return join(world.directory, "run", "podbot");
}

function read(path: string): string {
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}

async function untilEnded(world: World): Promise<void> {
  await eventually(async () => expect((await world.podbot(["ps"])).stdout).toContain("ended"));
}

describe("programs that the agent has put first on the owner's PATH", () => {
  const names = ["stty", "podbot-raw", "podbot-peer", "podbot-launch", "tar", "sh", "bash", "env", "node", "git"];

  /** In a home that is read-only inside: whoever writes there is outside. */
  const executed = (world: World) => read(join(world.home, "executed"));

  function plant(world: World, ...more: string[]): string {
    const bin = join(world.project, "node_modules/.bin");
    for (const name of [...names, ...more])
      world.file(join(bin, name), `#!/bin/sh\necho ${name} >>${world.home}/executed\n`, 0o755);
    return bin;
  }

  /** As the owner's shell does. */
  function callByName({ project: cwd, env }: World, ...words: string[]): void {
    spawnSync("/bin/sh", ["-c", words.join("; ")], { cwd, env: env as NodeJS.ProcessEnv });
  }

  test.each(["run", "exec"])(
    "are not executed by podbot %s on a terminal, nor when its job goes on after the agent has stopped itself",
    async (way) => {
      const world = sessionWorld();
      const before = way === "run" ? "run --agent custom" : `exec ${startIdle(world)}`;
      plant(world);
      world.file("bin/pb", `#!/bin/sh\nexec ${process.execPath} ${program} "$@"\n`, 0o755);
      const screen = openTerminal(world);
      screen.type('export PATH="$PWD/node_modules/.bin:$PATH"; clear');
      screen.type(`pb ${before} -- /bin/sh -c 'echo go; kill -STOP $$; echo on; read word; echo "end $word"'`);
      await screen.sees(/Stopped/);
      screen.type("clear; fg");
      await screen.sees(/^on$/m);
      await screen.isRaw();
      screen.type("typed");
      await screen.sees(/^end typed$/m);
      expect(executed(world)).toBe("");
      screen.type("clear; stty; podbot-raw; echo called $((6 * 7))");
      await screen.sees(/^called 42$/m);
      expect(executed(world)).toBe("stty\npodbot-raw\n");
    },
  );

  test("are not executed by any command without a terminal either", async () => {
    const world = sessionWorld();
    world.env["PATH"] = `${plant(world)}:${world.env["PATH"]}`;
    const id = (await podbot(world, ["run", "--detach", ...agent, "/bin/sleep", "300"])).stdout.trim();
    const commands: readonly (readonly string[])[] = [
      ["run", ...agent, "/bin/true"],
      ["sandbox", "--", "/bin/true"],
      ["exec", id, "--", "/bin/true"],
      ["ps"],
      ["ps", "--json"],
      ["logs", id],
      ["stop", id],
    ];
    for (const words of commands) {
      const { status, stderr } = await podbot(world, words);
      expect({ words, status, stderr, executed: executed(world) }).toEqual({
        words,
        status: 0,
        stderr: "",
        executed: "",
      });
    }
    callByName(world, ...names);
    expect(executed(world)).toBe(names.map((name) => `${name}\n`).join(""));
  });

  test("are passed over where one of them is bubblewrap: the system's own is taken", async () => {
    const world = sessionWorld();
    world.env["PATH"] = `${plant(world, "bwrap")}:${world.env["PATH"]}`;
    for (const words of [
      ["run", ...agent],
      ["run", "--detach", ...agent],
      ["keep", ...agent],
      ["sandbox", "--"],
    ]) {
      const { status } = await podbot(world, [...words, "/bin/true"]);
      expect({ words, status }).toEqual({ words, status: 0 });
    }
    expect(executed(world)).toBe("");
    await podbot(world, ["stop", "--all"]);
    await expectNothingLeft(world);
    callByName(world, "bwrap");
    expect(executed(world)).toBe("bwrap\n");
  });

  test("are not executed by podbot doctor, where one of them is bubblewrap", async () => {
    const world = newWorld();
    world.env["PATH"] = `${plant(world, "bwrap")}:${world.env["PATH"]}`;
    await podbot(world, ["doctor"]);
    expect(executed(world)).toBe("");
  });
});

describe("a session that is told to stop while it starts", () => {
  /** Resolves as soon as somebody listens on the keeper's socket; null where the command has ended before. */
  async function reach(world: World, child: ChildProcess) {
    while (child.exitCode === null) {
      const [id] = existsSync(runtimeOf(world)) ? readdirSync(runtimeOf(world)) : [];
      const path = join(runtimeOf(world), `${id}`, "keeper.sock");
      if (id !== undefined && existsSync(path)) {
        const socket = connect(path).on("error", () => {});
        // Between its name and its first listening there is a moment in which it refuses.
        const isOpen = await new Promise<boolean>((resolve) => {
          socket.once("connect", () => resolve(true)).once("close", () => resolve(false));
        });
        if (isOpen) return socket;
      }
      await turn();
    }
    return null;
  }

  test.each([0, 3, 6, 9, 12, 16, 20, 30, 45, 70])("%i ms after its socket is there ends wholly", async (delayMs) => {
    const world = sessionWorld();
    // Many mounts, so that the box takes its time.
    for (let count = 0; count < 400; count++) world.file(`home/many/${count}`);
    const child = world.spawn(["run", "--exclude", "~/many/*", ...agent, "sleep", "300"], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    endAfterwards(child);
    const done = outcomeOf(child);
    const socket = await reach(world, child);
    expect(socket).not.toBeNull();
    if (delayMs > 0) await wait(delayMs);
    socket?.resume().write('{"jsonrpc":"2.0","id":1,"method":"stop","params":{"graceMs":200}}\n');
    const { status, stderr } = await done;
    // By its end at the latest: the agent may just have been started, and is then ended as by any stop.
    if (status === 125) expect(stderr).toMatch(/SESSION_ENDED|BOX_LOST/);
    else expect({ status, stderr }).toEqual({ status: 143, stderr: "" });
    expect(stderr).not.toContain("defect");
    await expectNothingLeft(world);
  });

  test("would have come to its own end otherwise", async () => {
    const world = sessionWorld();
    const child = world.spawn(["run", ...agent, "sh", "-c", "exit 3"], { stdio: ["ignore", "pipe", "pipe"] });
    const done = outcomeOf(child);
    (await reach(world, child))?.resume().write('{"jsonrpc":"2.0","id":1,"method":"describe"}\n');
    expect(await done).toEqual({ status: 3, stdout: "", stderr: "" });
  });
});

describe("a directory that is renamed, and replaced by a link, while podbot run --detach starts in it", () => {
  const isPlanning = (world: World) => existsSync(join(stateOf(world), "sessions"));
  const moments: readonly (readonly [string, (world: World, child: ChildProcess) => boolean, number])[] = [
    ["at once", () => true, 0],
    ...[0, 1, 2, 3, 4, 6, 8, 10].map((ms) => [`${ms} ms after planning has begun`, isPlanning, ms] as const),
    ["when the keeper's process is there", (_, { pid }) => below(pid).some(({ argv }) => argv[2] === "keep"), 0],
    ["when the session is recorded", (world) => sessionsOf(world).length > 0, 0],
    ["never", () => false, 0],
  ];

  test.each(moments)("is still the one that is worked in: %s", async (_, isNow, delayMs) => {
    const world = sessionWorld();
    const [work, moved, other] = ["work", "moved", "other"].map((name) => join(world.home, name)) as [
      string,
      string,
      string,
    ];
    mkdirSync(work);
    mkdirSync(other);
    const child = world.spawn(["run", "--detach", ...agent, "/bin/sh", "-c", "touch here; pwd >where"], {
      cwd: work,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const done = outcomeOf(child);
    while (child.exitCode === null && !isNow(world, child)) await turn();
    if (delayMs > 0) await wait(delayMs);
    renameSync(work, moved);
    world.link(work, other);
    const { status, stderr } = await done;
    if (status === 0) await untilEnded(world);
    // Between the two calls above there is no such directory, and whoever looks just then says so.
    else expect(stderr).toMatch(/PATH_CHANGED|does not exist/);
    expect(readdirSync(other)).toEqual([]);
    expect(existsSync(join(moved, "here"))).toBe(status === 0);
    // Whoever goes by the name is led astray.
    expect(spawnSync("touch", ["here"], { cwd: work }).status).toBe(0);
    expect(readdirSync(other)).toEqual(["here"]);
  });
});

describe("an agent that does not want to end", () => {
  /** Its child does the tricks, one after the other, and then prints for ever; each that was done is written down. */
  const villain = (tricks: string) => `import os, resource, signal, time
attendant = os.getppid()
def bare(pid):
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (0, 0))
    return resource.prlimit(pid, resource.RLIMIT_NOFILE) == (0, 0)
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    for _ in range(500):
        if open(f"/proc/{pid}/stat").read().split(") ")[1][0] == "T": return True
        time.sleep(0.01)
    return False
if os.fork() == 0:
    os.setsid()
    if os.fork() > 0: os._exit(0)
    for number in range(1, 65):
        try: signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError): pass
    done = os.open("done", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    time.sleep(0.2)
    for trick in [${tricks}]: os.write(done, b"yes\\n" if trick() else b"no\\n")
    os.write(done, b"all\\n")
    while True:
        try: os.write(1, b".")
        except OSError: pass
        time.sleep(0.02)
time.sleep(0.1 if ${tricks === "" ? "True" : "False"} else 300)`;
  const [bareWarden, bareAttendant, stopAttendant] = [
    "lambda: bare(1)",
    "lambda: bare(attendant)",
    "lambda: stopped(attendant)",
  ] as const;
  const ways: readonly (readonly [string, readonly string[]])[] = [
    ["leaves a child that prints for ever", []],
    ["stops its attendant", [stopAttendant]],
    ["takes the descriptors of its attendant", [bareAttendant]],
    ["takes the descriptors of attendant and warden", [bareWarden, bareAttendant]],
    ["does all of that", [stopAttendant, bareAttendant, bareWarden]],
  ];
  const hostile = (tricks: readonly string[]) => ["/usr/bin/python3", "-c", villain(tricks.join(", "))];

  async function booted() {
    const machine = await Machine.boot();
    machine.world.repository();
    machine.world.file("home/.config/podbot/config.toml", "[sandbox]\ngrace_seconds = 1\n");
    return { machine, before: listing(machine.world.project) };
  }

  async function untilDone({ world }: Machine, tricks: readonly string[]): Promise<void> {
    const done = join(world.project, "done");
    await until("its tricks", () => read(done).endsWith("all\n"));
    expect(read(done)).toBe(`${"yes\n".repeat(tricks.length)}all\n`);
    rmSync(done);
  }

  test.each(ways)("and %s is ended by asking twice", async (_, tricks) => {
    const { machine, before } = await booted();
    const command = machine.spawn([process.execPath, program, "run", ...agent, ...hostile(tricks)]);
    await untilDone(machine, tricks);
    const keeper = machine.processes([command]).find(({ argv }) => argv[2] === "run" && argv[1] === program)?.pid;
    for (let times = 0; times < 2 && keeper !== undefined; times++) {
      kill(keeper, "SIGTERM");
      await wait(100);
    }
    const { stderr } = await command.done;
    expect(stderr).not.toContain("defect");
    await until("all of it ends", () => machine.processes([command]).length === 0);
    await expectClean(machine, before);
  });

  test.each(ways)("and %s is ended by podbot stop", async (_, tricks) => {
    const { machine, before } = await booted();
    const { status, stdout } = await machine.podbot("run", "--detach", ...agent, ...hostile(tricks));
    expect(status).toBe(0);
    await untilDone(machine, tricks);
    const stopped = await machine.podbot("stop", "--time", "200ms", stdout.trim());
    expect(stopped).toMatchObject({ status: 0, stdout, stderr: "" });
    await expectClean(machine, before);
  });
});

describe("records, logs and sockets of other sessions", () => {
  const mark = randomBytes(8).toString("hex");

  /** Names of all files that hold the mark, and whatever else lies there. */
  const look = (world: World) => {
    const places = `${stateOf(world)}/sessions ${runtimeOf(world)}`;
    return `grep -rsl ${mark} ${places}; find ${places} -mindepth 1 2>/dev/null`;
  };

  function start(world: World): void {
    startDetached(world, ["sh", "-c", "echo $0; while :; do sleep 1; done", mark]);
    const { stdout } = world.outside(look(world));
    for (const name of ["record.json", "journal.jsonl", "keeper.sock"]) expect(stdout).toContain(name);
  }

  test.each([
    ["the same environment", {}],
    ["another XDG_STATE_HOME", { XDG_STATE_HOME: "other-state" }],
  ])("cannot be read inside, from %s", async (_, change) => {
    const world = sessionWorld();
    start(world);
    await eventually(() => expect(world.outside(`grep -rl ${mark} ${stateOf(world)} | wc -l`).stdout).toBe("3\n"));
    const moved = Object.entries(change).map(([name, place]) => [name, join(world.home, place)] as const);
    const env = { ...world.env, ...Object.fromEntries(moved) };
    for (const words of [
      ["sandbox", "--"],
      ["run", ...agent],
    ]) {
      const { status, stdout, stderr } = await world.podbot([...words, "sh", "-c", `${look(world)}; echo looked`], {
        env,
      });
      expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: "looked\n", stderr: "" });
    }
  });

  test.each([
    ["sandbox", ["sandbox", "--"]],
    ["run", ["run", ...agent]],
  ])("cannot be read inside by a %s that was there before the home's first session", async (name, words) => {
    const world = sessionWorld();
    const script = `touch ready; until [ -e go ]; do sleep 0.05; done; grep -rsl ${mark} ${stateOf(world)} ${runtimeOf(world)}; echo looked`;
    const early = podbot(world, [...words, "sh", "-c", script]);
    await eventually(() => expect(existsSync(join(world.project, "ready"))).toBe(true));
    expect(sessionsOf(world)).toHaveLength(name === "run" ? 1 : 0);
    start(world);
    world.file("home/project/go");
    expect(await early).toEqual({ status: 0, stdout: "looked\n", stderr: "" });
  });
});

describe("a false keeper", () => {
  test.each([
    ["XDG_RUNTIME_DIR", "run"],
    ["XDG_STATE_HOME", "state"],
  ])("cannot be prepared: %s in the workspace is refused", async (name, place) => {
    const world = sessionWorld();
    for (const [directory, isRefused] of [
      [join(world.project, place), true],
      [join(world.home, "elsewhere", place), false],
    ] as const) {
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      const env = { ...world.env, [name]: directory };
      const { status, stderr } = await world.podbot(["run", ...agent, "touch", `started-${isRefused}`], { env });
      expect(stderr.includes("RUNTIME_DIRECTORY")).toBe(isRefused);
      expect(status).toBe(isRefused ? 125 : 0);
      expect(existsSync(join(world.project, `started-${isRefused}`))).toBe(!isRefused);
    }
  });

  const listener = `import json, os, socket, sys
path, log, answer = sys.argv[1:]
server = socket.socket(socket.AF_UNIX); server.bind(path + "-"); server.listen(16); os.rename(path + "-", path)
while True:
    connection = server.accept()[0]
    try:
        for line in connection.makefile("rb"):
            method = json.loads(line)["method"]
            open(log, "a").write(line.decode())
            if method == "describe": connection.sendall(answer.encode() + b"\\n")
            else: break
    except OSError: pass
    connection.close()`;

  async function listening(box: readonly string[]) {
    const world = newWorld();
    const id = "abcdefghij";
    const directory = join(runtimeOf(world), id);
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const idle = spawn("sleep", ["300"], { stdio: "ignore" });
    endAfterwards(idle);
    const record = {
      ...{
        version: 1,
        id,
        createdAt: "2026-01-01T00:00:00.000Z",
        keeper: markOf(idle.pid as number),
        wall: "bubblewrap",
      },
      ...{ dedicated: false, directory, cwd: world.project, agent: "custom", command: ["true"], detached: true },
      ...{ phase: "running", endedAt: null, exit: null },
    };
    world.file(join(stateOf(world), "sessions", id, "record.json"), JSON.stringify(record), 0o600);
    const log = join(world.directory, "heard");
    const result = { id, state: stateOf(world), phase: "running", pid: idle.pid };
    const words = [join(directory, "keeper.sock"), log, JSON.stringify({ jsonrpc: "2.0", id: 1, result })];
    const [first = "", ...rest] = [...box, "/usr/bin/python3", "-c", listener, ...words];
    const child = spawn(first, rest, { stdio: ["ignore", "ignore", "inherit"] });
    endAfterwards(child);
    await eventually(() => expect(existsSync(join(directory, "keeper.sock"))).toBe(true));
    return { world, id, heard: () => read(log) };
  }

  const asked = {
    exec: (id: string) => ["exec", "--env", "TOKEN=hunter2", id, "--", "echo", "hunter2"],
    stop: (id: string) => ["stop", "--time", "1ms", id],
  };

  test.each(["exec", "stop"] as const)("that listens in a box is told nothing by podbot %s", async (name) => {
    const all = ["bwrap", "--dev-bind", "/", "/", "--die-with-parent", "--unshare-user"];
    const inside = await listening([...all, "--unshare-pid", "--proc", "/proc", "--"]);
    const { status, stderr } = await inside.world.podbot(asked[name](inside.id));
    // What it stands for can still be removed.
    if (name === "stop") expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    else expect({ status, named: stderr.includes("SESSION_UNREACHABLE") }).toEqual({ status: 125, named: true });
    expect(inside.heard()).not.toMatch(/"connect"|"stop"|"describe"|hunter2/);
    // The same in no box is whoever the owner has started.
    const outside = await listening([...all, "--"]);
    await outside.world.podbot(asked[name](outside.id));
    expect(outside.heard()).toContain(name === "exec" ? '"describe"' : '"stop"');
  });
});

describe("a value that is given to podbot run --detach with --env", () => {
  /** Command lines of the whole machine that hold a word. */
  const shown = (word: string) =>
    readdirSync("/proc").filter((pid) => {
      try {
        return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, "latin1").includes(word);
      } catch {
        return false;
      }
    });

  test("is in no argument list, no record, no journal and no answer; the agent has it", async () => {
    const world = sessionWorld();
    const secret = randomBytes(16).toString("hex");
    const script = 'printf %s "$TOKEN" >seen; while :; do sleep 1; done';
    const starting = { is: true };
    const started = world
      .podbot(["run", "--detach", "--json", "--env", `TOKEN=${secret}`, ...agent, "sh", "-c", script])
      .finally(() => {
        starting.is = false;
      });
    const seen = new Set<string>();
    while (starting.is) {
      for (const pid of shown(secret)) seen.add(pid);
      await turn();
    }
    const { status, stdout, stderr } = await started;
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    await eventually(() => expect(read(join(world.project, "seen"))).toBe(secret));
    const answers = [stdout, (await world.podbot(["ps", "--json"])).stdout, (await world.podbot(["ps"])).stdout];
    expect(answers.join("")).not.toContain(secret);
    expect([...seen, ...shown(secret)]).toEqual([]);
    const find = (word: string) => world.outside(`grep -rl ${word} ${stateOf(world)} ${runtimeOf(world)}`).stdout;
    expect(find(secret)).toBe("");
    expect(find("printf")).toMatch(/record\.json|journal\.jsonl/);
    const careless = spawn("sleep", ["300", `0.${secret.replace(/\D/g, "")}`], { stdio: "ignore" });
    endAfterwards(careless);
    expect(shown(secret.replace(/\D/g, ""))).toEqual([`${careless.pid}`]);
  });

  // Not yet: see `valuesOf` in src/cli/detach.ts.
  test("acts inside only, whatever its name: NODE_OPTIONS does not reach the keeper, nor does HOME", async () => {
    const world = sessionWorld();
    const mark = join(world.home, "executed");
    const evil = world.file("home/project/evil.cjs", `require("node:fs").writeFileSync("${mark}", "")\n`);
    const elsewhere = join(world.home, "elsewhere");
    mkdirSync(elsewhere);
    const id = startDetached(
      world,
      ["sh", "-c", 'echo "$NODE_OPTIONS $HOME" >seen; while :; do sleep 1; done'],
      ...["--env", `NODE_OPTIONS=--require=${evil}`, "--env", `HOME=${elsewhere}`],
    );
    try {
      await eventually(() => expect(read(join(world.project, "seen"))).toBe(`--require=${evil} ${elsewhere}\n`));
      expect(existsSync(mark)).toBe(false);
      expect((await world.podbot(["ps", "-q"])).stdout).toBe(`${id}\n`);
    } finally {
      await world.podbot(["stop", "--all", "--time", "1ms"], { env: { ...world.env, HOME: elsewhere } });
    }
  });
});

describe("characters that act on a terminal or deceive its reader", () => {
  const odd = [
    ...["\u0001", "\u0007", "\u0008", "\u000d", "\u001b", "\u007f", "\u0080", "\u0085", "\u009b", "\u009d"],
    ...[
      "\u061c",
      "\u200e",
      "\u200f",
      "\u202a",
      "\u202e",
      "\u2066",
      "\u2069",
      "\u2028",
      "\u2029",
      "\u{e0001}",
      "\u{e0041}",
    ],
  ];
  const hostile = `a${odd.join("b")}z`;
  const raw = (shown: string) =>
    odd.filter((character) => shown.includes(character)).map((one) => one.codePointAt(0)?.toString(16));

  test("are spelled out by every command, and JSON is still JSON and means the same", async () => {
    const world = sessionWorld();
    const cwd = join(world.home, hostile);
    mkdirSync(cwd);
    const command = ["sh", "-c", 'printf %s "$0"; printf %s "$0" >&2', hostile];
    const started = await world.podbot(["run", "--detach", "--json", "-C", cwd, ...agent, ...command]);
    expect(JSON.parse(started.stdout)).toMatchObject({ cwd, command });
    const { id } = JSON.parse(started.stdout);
    await untilEnded(world);
    const table = await world.podbot(["ps"]);
    expect(table.stdout.split("\n")).toHaveLength(3);
    const list = await world.podbot(["ps", "--json"]);
    expect(JSON.parse(list.stdout)).toMatchObject([{ id, cwd, command }]);
    const logs = await world.podbot(["logs", id]);
    const entries = await world.podbot(["logs", "--json", id]);
    const said = entries.stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    for (const stream of ["stdout", "stderr"]) {
      const own = said.filter((entry) => entry.stream === stream);
      expect(own.map((entry) => entry.text).join("")).toBe(hostile);
    }
    const failures = await Promise.all(
      [
        ["exec", hostile, "true"],
        ["logs", hostile],
        ["stop", hostile],
        ["run", "-C", `${cwd}/missing`, ...agent, "true"],
        ["run", ...agent, hostile],
        ["run", "--agent", hostile],
      ].flatMap((words) => [world.podbot(words), world.podbot([words[0] as string, "--json", ...words.slice(1)])]),
    );
    for (const { status, stderr } of failures) {
      expect(status).not.toBe(0);
      expect(stderr).not.toContain("defect");
      if (stderr.startsWith("{")) expect(JSON.stringify(JSON.parse(stderr))).toContain("\u202e");
    }
    for (const { stdout, stderr } of [started, table, list, logs, entries, ...failures]) {
      expect(raw(stdout + stderr)).toEqual([]);
    }
    for (const { stdout } of [table, logs]) expect(stdout).toContain("\\x1bb\\x7fb\\x80");
    expect(raw(world.outside(`ls --show-control-chars -N ${world.home}`).stdout)).toEqual(raw(hostile));
  });
});

describe("strangers at the warden's socket", () => {
  /** Eight processes with five connections each: some silent, some slow, some half closed. */
  const crowd = (id: string) => `import os, socket, time
for _ in range(7):
    if os.fork() == 0: break
kept, count, end, said = [], 0, time.monotonic() + 60, False
while time.monotonic() < end:
    try:
        s = socket.socket(socket.AF_UNIX); s.setblocking(False); s.connect("/run/podbot/in/${id}.sock")
        if count % 3 == 1: s.send(b"p")
        if count % 3 == 2: s.send(b"podbot"); s.shutdown(socket.SHUT_WR)
        kept.append(s); count += 1
    except OSError: time.sleep(0.001)
    if len(kept) > 5: kept.pop(0).close()
    if count >= 50 and not said: said = True; print("go", flush=True)
    time.sleep(0.001)`;

  test("keep nobody else from the session, nor pile up at its keeper", async () => {
    const world = sessionWorld();
    const id = startIdle(world);
    const [{ keeper }] = JSON.parse((await world.podbot(["ps", "--json"])).stdout);
    const descriptors = () => readdirSync(`/proc/${keeper}/fd`).length;
    const before = descriptors();
    const strangers = world.spawn(["exec", id, "--", "/usr/bin/python3", "-c", crowd(id)], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let said = "";
    strangers.stdout?.on("data", (bytes: Buffer) => {
      said += bytes;
    });
    await eventually(() => expect(said.match(/go/g) ?? []).toHaveLength(8));
    const most = { is: 0 };
    for (let count = 0; count < 5; count++) {
      expect(await world.podbot(["exec", id, "--", "echo", "fine"])).toMatchObject({ status: 0, stdout: "fine\n" });
      expect((await world.podbot(["ps", "-q"])).stdout).toBe(`${id}\n`);
      most.is = Math.max(most.is, descriptors());
    }
    expect(most.is).toBeGreaterThan(before);
    expect(most.is).toBeLessThan(before + 64);
    expect(strangers.exitCode).toBeNull();
    expect(await world.podbot(["stop", "--time", "100ms", id])).toEqual({ status: 0, stdout: `${id}\n`, stderr: "" });
    await expectNothingLeft(world);
  });
});

describe("warden and attendant", () => {
  /** What conformance does not ask: traces, descriptors by another way, and the attendant. */
  const look = `import ctypes, os, signal, time
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 4
libc.syscall.restype = ctypes.c_long
buffer = ctypes.create_string_buffer(8)
class Vector(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
vector = Vector(ctypes.cast(buffer, ctypes.c_void_p).value, 8)
def called(result):
    if result < 0: raise OSError(ctypes.get_errno(), "")
    return result
def taken(pid):
    handle = called(libc.syscall(434, pid, 0))
    return called(libc.syscall(438, handle, 0, 0))
looks = {
    "exe": lambda pid: os.readlink(f"/proc/{pid}/exe"),
    "environ": lambda pid: open(f"/proc/{pid}/environ", "rb").read(1) or called(-1),
    "mem": lambda pid: open(f"/proc/{pid}/mem", "rb"),
    "fd": lambda pid: os.readlink(f"/proc/{pid}/fd/0"),
    "descriptor": taken,
    "memory": lambda pid: called(libc.process_vm_readv(pid, ctypes.byref(vector), 1, ctypes.byref(vector), 1, 0)),
    "trace": lambda pid: called(libc.ptrace(0x4206, pid, 0, 0)),
}
child = os.fork()
if child == 0: time.sleep(300)
for name, look in looks.items():
    answers = []
    for pid in (1, os.getppid(), child):
        try: look(pid); answers.append("done")
        except OSError: answers.append("refused")
    print(name, *answers)
os.kill(child, signal.SIGKILL)`;

  test("can be neither traced nor looked into nor robbed of descriptors, as a child of one's own can", async () => {
    const world = sessionWorld();
    const { stdout, stderr } = await world.podbot(["run", ...agent, "/usr/bin/python3", "-c", look]);
    const names = ["exe", "environ", "mem", "fd", "descriptor", "memory", "trace"];
    expect({ stdout, stderr }).toEqual({
      stdout: names.map((name) => `${name} refused refused done\n`).join(""),
      stderr: "",
    });
  });
});

describe("a process that is called like the box of another session", () => {
  const forge = (id: string) =>
    `import os; os.execv("/bin/sh", ["bwrap", "-c", "echo >forged; sleep 300; :", "/run/podbot/in/${id}.sock"])`;
  const isForged = ({ argv }: { readonly argv: readonly string[] }, id: string) =>
    argv[0] === "bwrap" && argv.at(-1) === `/run/podbot/in/${id}.sock` && argv[1] === "-c";

  test("is no box inside, and is not hit when that session is stopped; outside it is", async () => {
    const machine = await Machine.boot();
    const { world } = machine;
    world.repository();
    const before = listing(world.project);
    const start = async (...command: string[]) =>
      (await machine.podbot("run", "--detach", ...agent, ...command)).stdout.trim();
    const victim = await start("true");
    await until("the first has ended", async () => (await machine.ps())[0]?.state === "ended");
    const unknown = "abcdefghij";
    const other = await start("/usr/bin/python3", "-c", forge(victim));
    const third = await start("/usr/bin/python3", "-c", forge(unknown));
    const forged = (id: string) => machine.processes().filter((one) => isForged(one, id));
    await until("they are there", () => forged(victim).length === 1 && forged(unknown).length === 1);
    expect((await machine.ps()).map(({ id, state }) => ({ id, state }))).toEqual([
      { id: victim, state: "ended" },
      { id: other, state: "running" },
      { id: third, state: "running" },
    ]);
    expect(await machine.podbot("stop", victim)).toMatchObject({ status: 0, stdout: `${victim}\n`, stderr: "" });
    expect((await machine.podbot("stop", unknown)).stderr).toContain("SESSION_NOT_FOUND");
    expect(forged(victim)).toHaveLength(1);
    expect(forged(unknown)).toHaveLength(1);
    // Outside, nobody but the owner calls a process so; and of a session that is to go, it goes with it.
    const again = await start("true");
    await until("it has ended", async () =>
      (await machine.ps()).some(({ id, state }) => id === again && state === "ended"),
    );
    const outside = machine.spawn(["/usr/bin/python3", "-c", forge(again)]);
    await until("it is there", () => machine.processes([outside]).some((one) => isForged(one, again)));
    expect((await machine.podbot("stop", again)).status).toBe(0);
    await outside.exited;
    expect((await machine.podbot("stop", "--all", "--time", "100ms")).status).toBe(0);
    rmSync(join(world.project, "forged"));
    await expectClean(machine, before);
  });
});

describe("an untrusted project that chooses the agent", () => {
  const started = ["touch", "started"] as const;
  const texts: Readonly<Record<string, string>> = {
    "agent.kind": '[agent]\nkind = "custom"\ncommand = "touch"\nargs = ["started"]\n',
    "agent.command": '[agent]\ncommand = "touch"\n',
    "agent.args": '[agent]\nargs = ["--more"]\n',
    "agent.env_allowlist": '[agent]\nenv_allowlist = ["*"]\n',
  };

  test.each(Object.entries(texts))("by %s is refused, and nothing is started", async (key, content) => {
    const world = sessionWorld();
    world.file("home/project/.podbot/config.toml", content);
    for (const words of [["run"], ["run", "--detach"], ["keep"]]) {
      for (const rest of [[], [...agent, ...started]]) {
        const { status, stdout, stderr } = await world.podbot([...words, ...rest]);
        expect({ words, rest, status, stdout }).toEqual({ words, rest, status: 2, stdout: "" });
        expect(stderr).toContain("CONFIG_UNTRUSTED");
        expect(stderr).toContain(key);
      }
    }
    expect(existsSync(join(world.project, "started"))).toBe(false);
    expect(sessionsOf(world)).toEqual([]);
    await world.podbot(["trust"]);
    const { status } = await world.podbot(["run", ...(key === "agent.kind" ? [] : [...agent, ...started])]);
    expect({ status, started: existsSync(join(world.project, "started")) }).toEqual({ status: 0, started: true });
  });
});

describe("an archive that would unpack elsewhere", () => {
  /** Each is made by Python: tar itself would not write such names. */
  const archive = (outside: string) => `import io, sys, tarfile
out = tarfile.open(fileobj=sys.stdout.buffer, mode="w|")
def file(name, text=b"evil\\n"):
    member = tarfile.TarInfo(name); member.size = len(text); out.addfile(member, io.BytesIO(text))
def link(name, to, kind=tarfile.SYMTYPE):
    member = tarfile.TarInfo(name); member.type = kind; member.linkname = to; out.addfile(member)
file("${outside}/absolute")
file("../../outside/climbing")
file("a/../../../outside/climbing-later")
link("away", "${outside}"); file("away/through-link")
link("up", "../../outside"); file("up/through-relative-link")
link("file", "${outside}/kept"); file("file")
link("hard", "${outside}/kept", tarfile.LNKTYPE); file("hard")
file("plain", b"good\\n")
out.close()`;

  test("leaves all that lies outside of the workspace as it was", async () => {
    const world = newWorld();
    const outside = join(world.home, "outside");
    world.file(join(outside, "kept"), "kept\n");
    const { project: cwd, env } = world;
    mkdirSync(join(cwd, "target"));
    const bytes = spawnSync("/usr/bin/python3", ["-c", archive(outside)]).stdout;
    expect(bytes.length).toBeGreaterThan(10_000);
    const all = () => [listing(outside), read(join(outside, "kept"))];
    const before = all();
    await using session = await startSession(await planSandbox({ command: ["true"], cwd, env, session: true }));
    await session.sandbox.upload(Readable.from([bytes]), join(cwd, "target")).catch(() => {});
    expect(all()).toEqual(before);
    expect(readdirSync(join(cwd, "target"))).toContain("plain");
    // A tar that takes every name as it is changes nothing either.
    const unpack = ["tar", "-x", "-P", "--keep-directory-symlink", "-f", "-", "-C", join(cwd, "target")];
    const inside = await session.sandbox.exec({ argv: unpack as [string, ...string[]] });
    inside.stdout.resume();
    inside.stderr.resume();
    inside.stdin.end(bytes);
    await inside.exited;
    expect(all()).toEqual(before);
    spawnSync(unpack[0] as string, unpack.slice(1), { input: bytes });
    expect(all()).not.toEqual(before);
    expect(readdirSync(outside)).toEqual(expect.arrayContaining(["absolute", "climbing", "through-link"]));
  });
});
