import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { patience } from "../faults/thorough.ts";
import { asRoot, buildPrograms, makeScratch, ordinary, sanitized } from "./programs.ts";
import { birthOf, childrenOf, isAlive, Keeper, socketPathIn, Warden } from "./warden.ts";

const scratch = makeScratch(afterAll);
beforeAll(buildPrograms);

/** Whatever has to be ended with the test. */
type Finish = (clean: () => void) => void;

/** A keeper in a process of its own, which can die or be stopped. It never gives an order. */
const otherKeeper = `
  const server = require("net").createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", () => console.log("called"));
  });
  server.listen(process.argv[1], () => console.log("up"));`;

async function startKeeper(path: string, finish: Finish) {
  const child = spawn(process.execPath, ["-e", otherKeeper, path], { stdio: ["ignore", "pipe", "inherit"] });
  finish(() => void child.kill("SIGKILL"));
  let said = "";
  child.stdout.on("data", (bytes: Buffer) => {
    said += bytes.toString();
  });
  const hears = async (word: string) => {
    while (!said.includes(word)) await once(child.stdout, "data");
  };
  await hears("up");
  return { child, hears };
}

/** A warden as the first process of a pid namespace; without a birth, it has its token from descriptor 0. */
function startFirst(program: string, path: string, token: Buffer, finish: Finish, born = true): Warden {
  const file = `${path}.birth`;
  writeFileSync(file, birthOf(token));
  const own = [...asRoot, "--pid", "--fork", "--kill-child", "--mount-proc"];
  const warden = new Warden(
    "unshare",
    [...own, program, path, ...(born ? [file] : [])],
    born ? Buffer.alloc(0) : token,
  );
  finish(() => void (isAlive(warden.pid) && process.kill(warden.pid, "SIGKILL")));
  return warden;
}

// All at once: they do little but wait.
describe.concurrent.each([ordinary, sanitized])("podbot-warden, $build build, whose keeper", (programs) => {
  async function startBoth(finish: Finish, born = true) {
    const path = socketPathIn(scratch);
    const { child: keeper, hears } = await startKeeper(path, finish);
    const warden = startFirst(programs.warden, path, Buffer.alloc(32, 3), finish, born);
    await hears("called");
    return { path, keeper, warden };
  }

  const survives = async ({ pid }: Warden, ms: number) => {
    await sleep(ms);
    return isAlive(pid);
  };

  it("refuses it for 5 s ends in order, with everything that it has started", async (test) => {
    const keeper = new Keeper(socketPathIn(scratch));
    await keeper.listen();
    const warden = startFirst(programs.warden, keeper.path, keeper.token, (clean) => test.onTestFinished(clean));
    const mark = join(mkdtempSync(join(scratch, "child-")), "ended");
    // A session and descriptors of its own, so that only the warden's end reaches it.
    const daemon = `trap "echo terminated >${mark}; exit 0" TERM; echo ready; exec >/dev/null 2>&1; while :; do sleep 0.1; done`;
    const conversation = await keeper.start(["sh", "-c", `setsid sh -c '${daemon}' & wait`]);
    await conversation.untilOutput("ready");

    const before = performance.now();
    // The name stays, and nobody listens there: as where a keeper was killed.
    renameSync(keeper.path, `${keeper.path}.kept`);
    await keeper.close();
    renameSync(`${keeper.path}.kept`, keeper.path);
    test.expect(await warden.ended()).toMatchObject({ status: 143, complaints: "" });
    test.expect(performance.now() - before).toBeGreaterThan(5_000);
    test.expect(readFileSync(mark, "utf8")).toBe("terminated\n");
  });

  it("was killed ends, and not one whose keeper only seems dead", async (test) => {
    const finish: Finish = (clean) => test.onTestFinished(clean);
    const [killed, stopped, silent, unborn] = await Promise.all([
      startBoth(finish),
      startBoth(finish),
      startBoth(finish),
      startBoth(finish, false),
    ]);
    const busy = await startBusy(finish);
    killed.keeper.kill("SIGKILL");
    stopped.keeper.kill("SIGSTOP");
    unborn.keeper.kill("SIGKILL");
    test.expect(await killed.warden.ended()).toMatchObject({ status: 143, complaints: "" });
    await sleep(3_000);
    const alive = [stopped, silent, unborn, busy].map(({ warden }) => isAlive(warden.pid));
    test.expect(alive).toEqual([true, true, true, true]);
  });

  /** One that has more callers waiting than it takes: connecting is put off, and never refused. */
  async function startBusy(finish: Finish) {
    const path = socketPathIn(scratch);
    const hold = `
import signal, socket, sys
server = socket.socket(socket.AF_UNIX); server.bind(sys.argv[1]); server.listen(0)
callers = []
try:
    while True:
        caller = socket.socket(socket.AF_UNIX); caller.setblocking(False); caller.connect(sys.argv[1]); callers.append(caller)
except BlockingIOError: print("full", flush=True)
signal.pause()`;
    const keeper = spawn("python3", ["-c", hold, path], { stdio: ["ignore", "pipe", "inherit"] });
    finish(() => void keeper.kill("SIGKILL"));
    await once(keeper.stdout, "data");
    return { warden: startFirst(programs.warden, path, Buffer.alloc(32, 3), finish) };
  }

  it("was killed ends also where its socket is gone", async (test) => {
    const { path, keeper, warden } = await startBoth((clean) => test.onTestFinished(clean));
    const before = performance.now();
    rmSync(dirname(path), { recursive: true });
    keeper.kill("SIGKILL");
    test.expect(await warden.ended()).toMatchObject({ status: 143, complaints: "" });
    test.expect(performance.now() - before).toBeGreaterThan(5_000);
  });

  it("was killed ends though an agent has stopped its attendants", async (test) => {
    const keeper = new Keeper(socketPathIn(scratch));
    await keeper.listen();
    test.onTestFinished(() => keeper.close());
    const warden = startFirst(programs.warden, keeper.path, keeper.token, (clean) => test.onTestFinished(clean));
    const idle = await keeper.start(["sh", "-c", "echo begun; exec sleep 300"]);
    await idle.untilOutput("begun");
    const stopping = await keeper.start(["sh", "-c", "kill -STOP $PPID; echo stopped >&2; exec sleep 300"]);
    const [first] = childrenOf(warden.pid);
    const states = () => childrenOf(first as number).map((pid) => readFileSync(`/proc/${pid}/stat`, "latin1"));
    for (let tries = 0; tries < 500 && !states().some((stat) => / T /.test(stat)); tries++) await sleep(10);
    test.expect(states().filter((stat) => / T /.test(stat))).toHaveLength(1);
    stopping.socket.destroy();
    rmSync(dirname(keeper.path), { recursive: true });
    await keeper.close();
    test.expect(await warden.ended()).toMatchObject({ status: 143, complaints: "" });
  });

  it("has lost its socket, but not its connections, is served to the last", async (test) => {
    const keeper = new Keeper(socketPathIn(scratch));
    await keeper.listen();
    test.onTestFinished(() => keeper.close());
    const warden = startFirst(programs.warden, keeper.path, keeper.token, (clean) => test.onTestFinished(clean));
    const command = await keeper.start(["sh", "-c", "echo begun; cat; echo ended"]);
    await command.untilOutput("begun");
    const parked = await keeper.connection();
    rmSync(dirname(keeper.path), { recursive: true });
    // What it still holds keeps it; now it can only dial in vain.
    parked.destroy();
    await sleep(6_500);
    test.expect(isAlive(warden.pid)).toBe(true);
    command.send("E");
    const { end, output } = await command.outcome();
    test.expect({ end, output: output.toString() }).toEqual({ end: [0, 0], output: "begun\nended\n" });
    test.expect(await warden.ended()).toMatchObject({ status: 143, complaints: "" });
  });

  it("has lost its socket, and still holds a connection, is waited for", async (test) => {
    const keeper = new Keeper(socketPathIn(scratch));
    await keeper.listen();
    test.onTestFinished(() => keeper.close());
    const warden = startFirst(programs.warden, keeper.path, keeper.token, (clean) => test.onTestFinished(clean));
    const parked = await keeper.connection();
    rmSync(dirname(keeper.path), { recursive: true });
    test.expect(await survives(warden, 7_000)).toBe(true);
    parked.destroy();
    test.expect(await warden.ended()).toMatchObject({ status: 143, complaints: "" });
  });

  it.each([
    [4, 143, ""],
    [1, 125, "cannot wait"],
  ])(
    "is dead ends though somebody inside took its descriptors but for %i",
    { timeout: patience * 60_000 },
    async (most, status, complaint) => {
      const cleaning: (() => void)[] = [];
      try {
        const { keeper, warden } = await startBoth((clean) => void cleaning.push(clean));
        const [first] = childrenOf(warden.pid);
        execFileSync("prlimit", ["--pid", String(first), `--nofile=${most}:${most}`]);
        keeper.kill("SIGKILL");
        const ended = await warden.ended();
        expect(ended.status).toBe(status);
        expect(ended.complaints).toContain(complaint);
      } finally {
        for (const clean of cleaning) clean();
      }
    },
  );

  it("is followed by another in time goes on", async (test) => {
    const { path, keeper, warden } = await startBoth((clean) => test.onTestFinished(clean));
    keeper.kill("SIGKILL");
    await once(keeper, "exit");
    await sleep(2_000);
    rmSync(path);
    const next = createServer((socket) => socket.on("error", () => {}));
    test.onTestFinished(() => void next.close());
    next.listen(path);
    await once(next, "connection");
    test.expect(await survives(warden, 5_000)).toBe(true);
  });
});
