import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { markOf } from "../../src/machine/process-mark.ts";
import { until } from "../eventually.ts";
import { program } from "../world.ts";
import { below, expectClean, expectNobody, kill, listing, Machine, namesIn, stopAll } from "./machine.ts";

async function booted(mounts = "", options: { readonly buries?: boolean } = {}) {
  const machine = await Machine.boot({ mounts, ...options });
  machine.world.repository();
  return { machine, before: listing(machine.world.project) };
}

async function startDetached(machine: Machine, ...command: string[]): Promise<string> {
  const { status, stdout, stderr } = await machine.podbot("run", "--detach", "--agent", "custom", "--", ...command);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return stdout.trim();
}

function keeperOf(machine: Machine): number {
  return machine.processes().find(({ argv }) => argv[2] === "keep")?.pid ?? -1;
}

const run = ["run", "--agent", "custom", "--"] as const;

/** Of a record, as a keeper writes it; `change` says what is wrong with it. */
function writeRecord(machine: Machine, id: string, change: object): void {
  const at = "2026-01-01T00:00:00.000Z";
  const record = {
    version: 1,
    id,
    createdAt: at,
    keeper: { ...markOf(process.pid), pid: 1 },
    dedicated: true,
    wall: "bubblewrap",
    directory: `/run/user/${process.getuid?.()}/podbot/${id}`,
    cwd: machine.world.project,
    agent: "custom",
    command: ["true"],
    detached: true,
    phase: "running",
    endedAt: null,
    exit: null,
    ...change,
  };
  machine.world.file(join(machine.sessions, id, "record.json"), JSON.stringify(record));
}

/** A record whose keeper is a process of the machine, by the number that it has there. */
async function markInside(machine: Machine, pid: number): Promise<object> {
  const { stdout } = await machine.spawn([
    "sh",
    "-c",
    `cat /proc/sys/kernel/random/boot_id; readlink /proc/self/ns/pid; cut -d' ' -f22 /proc/${pid}/stat`,
  ]).done;
  const [boot, space, started] = stdout.trim().split("\n");
  return { pid, started, space: `${boot} ${space}`, machine: markOf(process.pid)?.machine };
}

describe("a full disk", () => {
  const small =
    'mkdir -p "$WORLD/home/.local/state" && mount -t tmpfs -o size=64k,mode=700 none "$WORLD/home/.local/state"';
  const full = `${small} && head -c 100000 /dev/zero > "$WORLD/home/.local/state/full" || true`;

  test("for the state means that nothing starts, and says so", async () => {
    const { machine, before } = await booted(full);
    const { status, stderr } = await machine.podbot(...run, "true");
    expect(status).toBe(125);
    expect(stderr).toMatch(/ENOSPC|cannot be made|cannot write/);
    expect(stderr).not.toContain("defect");
    await expectClean(machine, before);
  });

  test("is what made the difference", async () => {
    const { machine, before } = await booted(small);
    expect(await machine.podbot(...run, "true")).toEqual({ status: 0, stdout: "", stderr: "", signal: null });
    await expectClean(machine, before);
  });

  test("that fills up while a session runs changes neither its exit status nor what it leaves", async () => {
    const { machine, before } = await booted(small);
    const state = "$HOME/.local/state/full";
    const { done } = machine.spawn([
      "sh",
      "-c",
      `"$0" "$@" & while [ ! -e begun ]; do sleep 0.05; done; head -c 100000 /dev/zero > ${state}; touch go; wait $!`,
      process.execPath,
      ...[
        program,
        ...run,
        "sh",
        "-c",
        "touch begun; while [ ! -e go ]; do sleep 0.05; done; seq 20000; rm begun go; exit 7",
      ],
    ]);
    const { status, stdout } = await done;
    expect(status).toBe(7);
    expect(stdout.trim().split("\n").length).toBe(20_000);
    expect(await machine.ps()).toEqual([]);
    await stopAll(machine, before);
  });

  test("that has space again later tells what of the log is missing", async () => {
    const { machine, before } = await booted(small);
    const script =
      'while [ ! -e go ]; do sleep 0.05; done; seq 30000; touch printed; while [ ! -e on ]; do sleep 0.05; done; echo "the end"';
    const id = await startDetached(machine, "sh", "-c", script);
    await machine.spawn(["sh", "-c", "head -c 100000 /dev/zero > $HOME/.local/state/full; touch go"]).done;
    await until("it has printed", () => listing(machine.world.project).includes("printed"));
    await machine.spawn(["sh", "-c", "sleep 1; rm $HOME/.local/state/full; touch on"]).done;
    await until("it ends", async () => (await machine.ps())[0]?.state !== "running");
    const { status, stdout, stderr } = await machine.podbot("logs", id);
    expect(status).toBe(0);
    expect(stdout).toContain("the end");
    expect(stderr).toMatch(/\d+ bytes of this log could not be written/);
    await stopAll(machine, [...before, "go", "on", "printed"].sort());
  });

  test("for the sockets means another place, with a warning, or an error that says so", async () => {
    const { machine, before } = await booted(
      'mount -t tmpfs -o size=4k,nr_inodes=2,mode=700 none "$WORLD/run" && mount --bind "$WORLD/run" /run/user/*',
    );
    const { status, stderr } = await machine.podbot(...run, "true");
    expect(stderr).not.toContain("defect");
    if (status === 0) expect(stderr).toContain("XDG_RUNTIME_DIR");
    else expect(stderr).toMatch(/cannot be made.*\n.*way out/);
    await stopAll(machine, before);
  });
});

describe("a directory that cannot be written", () => {
  test("for the state means that nothing starts, and says so", async () => {
    const { machine, before } = await booted(
      'mkdir -p "$WORLD/home/.local/state" && mount -t tmpfs -o ro none "$WORLD/home/.local/state"',
    );
    const { status, stderr } = await machine.podbot(...run, "true");
    expect(status).toBe(125);
    expect(stderr).toMatch(/XDG_(STATE|CACHE)_HOME/);
    expect(stderr).not.toContain("defect");
    await expectClean(machine, before);
  });

  test("for the sockets means another place, with a warning", async () => {
    const { machine, before } = await booted("mount -t tmpfs -o ro,mode=700 none /run/user/*");
    const { status, stderr } = await machine.podbot(...run, "true");
    expect(status).toBe(0);
    expect(stderr).toContain("XDG_RUNTIME_DIR is passed over");
    await stopAll(machine, before);
  });
});

describe("a directory that is deleted under a running session", () => {
  test("with the sockets: ps says what is wrong, exec fails clearly, stop ends it", async () => {
    const { machine, before } = await booted();
    const id = await startDetached(machine, "sleep", "300");
    rmSync(join(machine.runtime, id), { recursive: true });
    expect(await machine.ps()).toMatchObject([
      { id, state: "unreachable", why: expect.stringContaining("socket is gone") },
    ]);
    const { status, stderr } = await machine.podbot("exec", id, "true");
    expect(status).toBe(125);
    expect(stderr).toMatch(/is not running.*unreachable/);
    await stopAll(machine, before);
  });

  test("with the whole runtime directory: the same", async () => {
    const { machine, before } = await booted();
    const id = await startDetached(machine, "sleep", "300");
    rmSync(machine.runtime, { recursive: true });
    expect(await machine.ps()).toMatchObject([{ id, state: "unreachable" }]);
    await stopAll(machine, before);
  });

  test("with the records: it is still listed as running, and nothing is left after stop", async () => {
    const { machine, before } = await booted();
    const id = await startDetached(machine, "sleep", "300");
    rmSync(machine.state, { recursive: true });
    expect(await machine.ps()).toMatchObject([{ id, state: "running" }]);
    expect((await machine.podbot("exec", id, "true")).status).toBe(0);
    await stopAll(machine, before);
  });

  test("with everything: nothing says any more that it is ours, and it ends with its keeper", async () => {
    const { machine, before } = await booted();
    await startDetached(machine, "sleep", "300");
    rmSync(machine.state, { recursive: true });
    rmSync(machine.runtime, { recursive: true });
    expect(await machine.ps()).toEqual([]);
    expect(kill(keeperOf(machine), "SIGTERM")).toBe(true);
    await expectNobody(machine);
    await stopAll(machine, before);
  });

  test("control: the session answers as long as nothing is deleted", async () => {
    const { machine, before } = await booted();
    const id = await startDetached(machine, "sleep", "300");
    expect(await machine.ps()).toMatchObject([{ id, state: "running" }]);
    expect((await machine.podbot("exec", id, "true")).status).toBe(0);
    await stopAll(machine, before);
  });
});

describe("a pid that belongs to somebody else by now", () => {
  test("makes the session dead, and its new owner is never signalled", async () => {
    const { machine, before } = await booted();
    const { child, done } = machine.spawn(["sleep", "300"]);
    await until("it sleeps", () => below(child.pid).some(({ argv }) => argv[0] === "sleep"));
    const inside = (await machine.spawn(["pgrep", "-x", "sleep"]).done).stdout.trim();
    const mark = await markInside(machine, Number(inside));
    writeRecord(machine, "aaaaaaaaaa", { keeper: mark });
    expect(await machine.ps()).toMatchObject([{ state: "unreachable" }]);
    writeRecord(machine, "aaaaaaaaaa", { keeper: { ...mark, started: "1" } });
    expect(await machine.ps()).toMatchObject([{ state: "died" }]);
    await machine.podbot("stop", "--all");
    expect(below(child.pid).length).toBe(1);
    for (const process of below(child.pid)) kill(process.pid);
    expect((await done).signal).toBe("SIGKILL");
    await expectClean(machine, before);
  });
});

describe("a clock that was set", () => {
  test("makes no nonsense of ages and leaves one order", async () => {
    const { machine, before } = await booted();
    const dead = { keeper: { ...(await markInside(machine, 1)), started: "1" } };
    writeRecord(machine, "aaaaaaaaaa", { ...dead, createdAt: "2999-01-01T00:00:00.000Z" });
    writeRecord(machine, "bbbbbbbbbb", { ...dead, createdAt: "1970-01-01T00:00:00.000Z" });
    writeRecord(machine, "cccccccccc", { ...dead, createdAt: "1970-01-01T00:00:00.000Z" });
    const end = { phase: "ended", endedAt: "1970-01-01T00:00:00.000Z", exit: { code: 0, killed: false } };
    writeRecord(machine, "dddddddddd", { ...dead, createdAt: "2020-01-01T00:00:00.000Z", ...end });
    const { stdout } = await machine.podbot("ps");
    expect(stdout).toMatch(/^aaaaaaaaaa +died +\? /m);
    expect(stdout).toMatch(/^bbbbbbbbbb +died +\d+d /m);
    expect(stdout).not.toMatch(/NaN|-\d+[smhd] /);
    expect((await machine.ps()).map(({ id }) => id[0])).toEqual(["b", "c", "d", "a"]);
    await stopAll(machine, before);
  });
});

describe("a record that cannot be read", () => {
  const damages: readonly [string, (file: string, text: string) => void][] = [
    ["empty", (file) => writeFileSync(file, "")],
    ["cut off", (file, text) => writeFileSync(file, text.slice(0, 100))],
    ["of another version", (file, text) => writeFileSync(file, text.replace('"version": 1', '"version": 2'))],
    ["missing", (file) => rmSync(file)],
    [
      "a directory",
      (file) => {
        rmSync(file);
        mkdirSync(file);
      },
    ],
  ];

  test.each(damages)("%s: a session that runs is listed and can be stopped", async (_, damage) => {
    const { machine, before } = await booted();
    const id = await startDetached(machine, "sleep", "300");
    const file = join(machine.sessions, id, "record.json");
    damage(file, readFileSync(file, "utf8"));
    expect(await machine.ps()).toMatchObject([{ id, state: "running", why: expect.stringContaining("record") }]);
    await stopAll(machine, before);
  });

  test.each(damages)("%s: what a dead one left is listed and removed", async (_, damage) => {
    const { machine, before } = await booted();
    const id = await startDetached(machine, "sleep", "300");
    kill(keeperOf(machine));
    await expectNobody(machine);
    const file = join(machine.sessions, id, "record.json");
    damage(file, readFileSync(file, "utf8"));
    expect(await machine.ps()).toMatchObject([{ id, state: "stray", why: expect.stringContaining("record") }]);
    await stopAll(machine, before);
  });
});

describe("what a crash leaves between two steps", () => {
  test("a session that was being recorded is removed", async () => {
    const { machine, before } = await booted();
    machine.world.file(join(machine.sessions, ".aaaaaaaaaa.99999999.new", "record.json.new"), "{");
    await stopAll(machine, before);
  });

  test("a claim that was being written is removed", async () => {
    const { machine, before } = await booted();
    machine.world.file(join(machine.held, "99999999-0.json.new"), "{");
    await stopAll(machine, before);
  });
});

describe("where nobody buries the dead, as in a container without an init", () => {
  /** Zombies stay until the machine goes; what counts is that they are dead. */
  async function expectStopped(machine: Machine, before: readonly string[]): Promise<void> {
    const { status, stderr } = await machine.podbot("stop", "--all");
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(await machine.ps()).toEqual([]);
    expect(machine.processes().filter(({ state }) => state !== "Z")).toEqual([]);
    expect(namesIn(machine.runtime)).toEqual([]);
    expect(namesIn(machine.held)).toEqual([]);
    expect(listing(machine.world.project)).toEqual(before);
  }

  test("a killed keeper is known to be dead, and what it held is removed", async () => {
    const { machine, before } = await booted("", { buries: false });
    const id = await startDetached(machine, "sleep", "300");
    kill(keeperOf(machine));
    await until("all are dead", () => machine.processes().every(({ state }) => state === "Z"));
    expect(machine.processes()).not.toEqual([]);
    expect(await machine.ps()).toMatchObject([{ id, state: "died" }]);
    await expectStopped(machine, before);
  });

  test("a stopped keeper and its box are ended", async () => {
    const { machine, before } = await booted("", { buries: false });
    await startDetached(machine, "sleep", "300");
    kill(keeperOf(machine), "SIGSTOP");
    await expectStopped(machine, before);
  });
});

describe("commands that meet", () => {
  test("two stops at once both succeed, and nothing is left", async () => {
    const { machine, before } = await booted();
    for (let round = 0; round < 4; round++) {
      await startDetached(machine, "sleep", "300");
      const stops = await Promise.all([1, 2, 3].map(() => machine.podbot("stop", "--all")));
      for (const { status, stderr } of stops) expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      await expectClean(machine, before);
    }
  });

  test("an exec during a stop ends, with a status and without a defect", async () => {
    const { machine, before } = await booted();
    const id = await startDetached(machine, "sh", "-c", "trap '' TERM; while :; do sleep 0.1; done");
    const early = machine.spawn([process.execPath, program, "exec", id, "--", "sleep", "300"]);
    await until("it runs", () => machine.processes().some(({ argv }) => argv[0] === "sleep" && argv[1] === "300"));
    const stop = machine.podbot("stop", "--all", "--time", "1");
    const late = await Promise.all([1, 2, 3].map(() => machine.podbot("exec", id, "--", "sleep", "300")));
    expect((await stop).status).toBe(0);
    for (const { status, stderr } of [await early.done, ...late]) {
      expect(status).not.toBe(0);
      expect(stderr).not.toContain("defect");
    }
    await expectClean(machine, before);
  });

  test("a stopped keeper is suspended, ps does not wait for it, and stop ends it", async () => {
    const { machine, before } = await booted();
    const id = await startDetached(machine, "sleep", "300");
    kill(keeperOf(machine), "SIGSTOP");
    await until("it is stopped", () => machine.processes().some(({ state }) => state === "T"));
    expect(await machine.ps()).toMatchObject([{ id, state: "suspended", why: expect.stringContaining("kill -CONT") }]);
    expect(await machine.podbot("exec", id, "true")).toMatchObject({ status: 125 });
    await stopAll(machine, before);
  });

  test("an exec whose client is killed leaves nobody inside", async () => {
    const { machine, before } = await booted();
    const id = await startDetached(machine, "sleep", "300");
    const quiet = machine.processes().length;
    const { child, done } = machine.spawn([process.execPath, program, "exec", id, "--", "sleep", "301"]);
    await until("it runs", () => machine.processes().length > quiet);
    for (const process of below(child.pid)) kill(process.pid);
    await done;
    await until("it is missed", () => machine.processes().length === quiet);
    expect(await machine.ps()).toMatchObject([{ id, state: "running" }]);
    await stopAll(machine, before);
  });
});

test("what a killed session held in the workspace is the owner's again, also if they have used it meanwhile", async () => {
  const { machine, before } = await booted();
  await startDetached(machine, "sleep", "300");
  expect(existsSync(join(machine.world.project, ".podbot"))).toBe(true);
  kill(keeperOf(machine));
  await expectNobody(machine);
  machine.world.file("home/project/.podbot/config.toml", "");
  await stopAll(machine, [...before, ".podbot/", ".podbot/config.toml"].sort());
  expect(readdirSync(join(machine.world.project, ".podbot"))).toEqual(["config.toml"]);
});
