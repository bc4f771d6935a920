// @module-tag security
import { readFileSync } from "node:fs";
import { constants } from "node:os";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { buildPrograms, makeScratch, ordinary, sanitized } from "./programs.ts";
import { Conversation, childrenOf, frame, isAlive, Keeper, socketPathIn, Warden } from "./warden.ts";

const scratch = makeScratch(afterAll);
beforeAll(buildPrograms);

const { errno, signals } = constants;
const sh = (script: string) => ["sh", "-c", script];

/** Its child says that both are ready: until it is a program of its own, it would swallow what the shell traps. */
const politely = "trap 'echo bye; exit 3' TERM; sh -c 'echo here; exec sleep 100' & wait";

/** What stands behind bubblewrap: nothing of the host's processes, no capability, and the socket read-only. */
const box = (directory: string) => [
  ...["--unshare-all", "--as-pid-1", "--die-with-parent", "--cap-drop", "ALL"],
  ...["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run"],
  ...["--ro-bind", directory, "/run/podbot/in", "--chdir", "/"],
];

describe.each([ordinary, sanitized])("podbot-warden as the first process of a box, $build build", (programs) => {
  let keeper: Keeper;
  let bwrap: Warden;

  beforeEach(async () => {
    keeper = new Keeper(socketPathIn(scratch));
    await keeper.listen();
    const words = [...box(dirname(keeper.path)), "--", programs.warden, "/run/podbot/in/warden.sock"];
    bwrap = new Warden("bwrap", words, keeper.token);
  });

  afterEach(async () => {
    if (isAlive(bwrap.pid)) process.kill(bwrap.pid, "SIGKILL");
    const { complaints } = await bwrap.ended();
    await keeper.close();
    expect(complaints).toBe("");
  });

  const start = async (script: string) => {
    const conversation = await keeper.start(sh(script));
    await conversation.untilTold("P");
    return conversation;
  };
  const run = async (script: string) => {
    const { output, errors, end } = await keeper.run(sh(script));
    return { output: output.toString(), errors: errors.toString(), end };
  };

  /** The first process, by its number out here. */
  const first = () =>
    childrenOf(bwrap.pid).find((pid) => /^NSpid:.*\t1$/m.test(readFileSync(`/proc/${pid}/status`, "utf8")));

  it("is that, and carries output and ends", async () => {
    expect(await run("cat /proc/1/comm; exit 3")).toEqual({ output: "podbot-warden\n", errors: "", end: [0, 3] });
  });

  it("gives a terminal", async () => {
    const { output } = await keeper.run(["stty", "size"], { terminal: [30, 100] });
    expect(output.toString()).toBe("30 100\r\n");
  });

  it("cannot be killed or stopped from inside, where others can", async () => {
    const script = `
      for signal in KILL STOP TERM INT HUP QUIT USR1 ABRT 33 64; do kill -$signal 1; done
      grep -q ') [SR]' /proc/1/stat && echo alive
      sleep 100 & kill -KILL $!; wait $!; echo $?`;
    expect(await run(script)).toMatchObject({ output: "alive\n137\n", end: [0, 0] });
    expect(await run("echo still there")).toMatchObject({ output: "still there\n" });
  });

  it("cannot be looked into from inside, where others can", async () => {
    const script = `
      look() { for part in environ maps mem; do head -c 0 /proc/$1/$part 2>/dev/null && echo $1 $part; done; }
      look 1; look $PPID; ls /proc/1/fd /proc/1/cwd/ >/dev/null 2>&1 && echo 1 fd; look self`;
    expect(await run(script)).toMatchObject({ output: "self environ\nself maps\nself mem\n" });
  });

  it("cannot have its socket removed or replaced from inside", async () => {
    const script = `
      cd /run/podbot/in; rm -f warden.sock 2>/dev/null && echo removed; mv warden.sock other 2>/dev/null && echo moved
      touch new 2>/dev/null && echo made; test -S warden.sock && touch /tmp 2>/dev/null; test -S warden.sock && echo there`;
    expect(await run(script)).toMatchObject({ output: "there\n" });
    expect(keeper.strangers).toBe(0);
  });

  it("buries orphans", async () => {
    await run("(sh -c 'exit 3' &) ; (sh -c 'exit 4' &) ; exit 0");
    const zombies = "cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z'";
    await expect.poll(async () => (await run(zombies)).output).toBe("0\n");
  });

  it("ends everything when it is asked to, and says so when all of it has gone", async () => {
    const polite = await start(politely);
    await polite.untilOutput("here");
    const stopped = await start("exec sleep 100");
    stopped.signal(signals.SIGSTOP);
    await stopped.untilTold("Z");
    const daemons = await start("setsid sleep 100 & setsid sleep 100 & exit 0");
    await daemons.untilTold("X");
    const unread = await start("head -c 4000000 /dev/zero");
    unread.grants = false;
    await unread.until(() => unread.received.O > 0);

    expect(await keeper.converse(frame("Q"))).toMatchObject({ told: "X", end: [0, 0] });
    expect(await polite.outcome()).toMatchObject({ end: [0, 3], output: Buffer.from("here\nbye\n") });
    expect(await stopped.outcome()).toMatchObject({ end: [1, signals.SIGTERM] });
    unread.grants = true;
    unread.grant(1, 4_000_000);
    expect(await unread.outcome()).toMatchObject({ end: [1, signals.SIGTERM] });
    const { output } = await run("cat /proc/[0-9]*/comm");
    expect(output).toMatch(/^podbot-warden\n/);
    expect(output).not.toMatch(/sleep|head/);
  });

  it("says so when it has been told how the commands ended", async () => {
    // SIGCONT is the last signal of a request to end, and comes to the attendant before it comes to the agent.
    const agent = await start("trap '' TERM; trap 'echo asked' CONT; echo here; while :; do sleep 0.01; done");
    await agent.untilOutput("here");
    const attendant = childrenOf(first() as number)[0] as number;
    const quitting = new Conversation(await keeper.connection());
    quitting.send("Q");
    await agent.untilOutput("asked");
    // The agent ends, and its attendant is slow.
    process.kill(attendant, "SIGSTOP");
    for (const pid of childrenOf(attendant)) process.kill(pid, "SIGKILL");
    await sleep(200);
    expect(quitting.told).toBe("");
    process.kill(attendant, "SIGCONT");
    expect(await quitting.outcome()).toMatchObject({ told: "X", end: [0, 0] });
    expect(await agent.outcome()).toMatchObject({ end: [1, signals.SIGKILL] });
  });

  it("waits for those who do not end, if the client does", async () => {
    const deaf = await start("trap '' TERM; echo deaf; while :; do sleep 1; done");
    await deaf.untilOutput("deaf");
    const patient = new Conversation(await keeper.connection());
    patient.send("Q");
    const impatient = await keeper.connection();
    impatient.write(frame("Q"));
    impatient.destroy();
    // Until both have sent their signals, these may hit it.
    await expect.poll(async () => (await run("echo served")).output).toBe("served\n");
    expect(patient.told).toBe("");
    deaf.signal(signals.SIGKILL);
    expect(await deaf.outcome()).toMatchObject({ end: [1, signals.SIGKILL] });
    expect(await patient.outcome()).toMatchObject({ told: "X", end: [0, 0] });
  });

  it("ends with everything when it is told to from outside", async () => {
    const polite = await start(politely);
    await polite.untilOutput("here");
    process.kill(first() as number, "SIGTERM");
    expect(await polite.outcome()).toMatchObject({ end: [0, 3], output: Buffer.from("here\nbye\n") });
    expect(await bwrap.ended()).toMatchObject({ status: 143 });
  });

  it("refuses another user, of whom this namespace knows nothing", async () => {
    const { failure } = await keeper.run(["true"], { user: [12_345, 12_345] });
    expect(failure?.[0]).toBe(2);
    expect([errno.EPERM, errno.EINVAL]).toContain(failure?.[1]);
  });
});
