// @module-tag security
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../src/github/clock.ts";
import { holdLease } from "../../src/github/lease.ts";
import { makeSecretsDirectory } from "../../src/github/token-file.ts";
import { type DaemonEvent, serveTokens } from "../../src/keeper/token-daemon.ts";
import { markOf, type ProcessMark } from "../../src/machine/process-mark.ts";
import type { GitHubMark, SessionRecord } from "../../src/registry/record.ts";
import { removeSession, writeRecord } from "../../src/registry/store.ts";
import { until } from "../eventually.ts";
import { isClockSteady } from "../faults/thorough.ts";
import { ended, sampleRecord } from "../registry/sessions.ts";
import { ConnectProxy } from "../upstream/connect-proxy.ts";
import { newWorld } from "../world.ts";
import { Town, type TownOptions } from "./town.ts";

/** Looks twenty times as often as it need, so that tests need not wait. */
const restless = { ...systemClock, sleep: (ms: number, signal: AbortSignal) => systemClock.sleep(ms / 20, signal) };

/** A process that lives until it is killed. */
function bystander(): ChildProcess {
  const child = spawn("sleep", ["600"], { stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

async function killed(child: ChildProcess): Promise<void> {
  const gone = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await gone;
}

/** Records of sessions whose keeper is somebody else, and a daemon. */
async function stage(options: TownOptions = {}) {
  const town = await Town.open(options);
  onTestFinished(() => town[Symbol.asyncDispose]());
  const world = newWorld();
  const state = join(world.home, ".local/state/podbot");
  const keeper = bystander();
  const github: GitHubMark = {
    ...town.app,
    repository: "example/name",
    permissions: { contents: "write", metadata: "read" },
    token: "file",
  };
  const session = async (id: string, change: Partial<SessionRecord> = {}) => {
    const directory = join(world.directory, "run/podbot", id);
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    await makeSecretsDirectory(join(directory, "secrets"));
    const record = sampleRecord({
      id,
      directory,
      github,
      keeper: markOf(keeper.pid as number) as ProcessMark,
      ...change,
    });
    writeRecord(state, record);
    const file = join(directory, "secrets/ghapp_token");
    return { record, directory, token: () => (existsSync(file) ? readFileSync(file, "utf8") : null) };
  };
  const over = new AbortController();
  const events: DaemonEvent[] = [];
  let running: Promise<void> | null = null;
  const start = (which: "all" | readonly string[] = "all") => {
    const report = (event: DaemonEvent) => void events.push(event);
    running = serveTokens({ env: world.env, which, signal: over.signal, report, clock: restless });
    return running;
  };
  onTestFinished(async () => {
    over.abort();
    await running?.catch(() => {});
  });
  return { town, world, state, keeper, github, session, over, events, start };
}

describe("podbot token-daemon", () => {
  test.runIf(isClockSteady)(
    "keeps the tokens of sessions fresh that nobody else does, and lets go at the end",
    async () => {
      const { town, session, start, over, events } = await stage({ tokenMs: 2_000 });
      const one = await session("aaaaaaaa11");
      const daemon = start();
      await until("the daemon does it", () => town.minted.length >= 3);
      await until("the daemon does it", () => one.token() === town.minted.at(-1)?.value);
      // While it does, nobody else can.
      expect(holdLease(one.directory)).toBeNull();
      // One that begins later.
      const two = await session("bbbbbbbb22");
      await until("the daemon does it", () => two.token() !== null);
      over.abort();
      await daemon;
      expect(events[0]).toEqual({ session: "aaaaaaaa11", kind: "taken" });
      expect(events.filter(({ kind }) => kind === "left")).toHaveLength(2);
      for (const { directory } of [one, two]) expect(holdLease(directory)).not.toBeNull();
      expect(town.minted.every(({ repository }) => repository === "name")).toBe(true);
    },
  );

  test("takes no token of another owner's repository, though it has the same name", async () => {
    const { town, session, start, events, github } = await stage();
    const stranger = await session("aaaaaaaa11", { github: { ...github, repository: "evil/name" } });
    const control = await session("bbbbbbbb22");
    void start();
    await until("the daemon does it", () => control.token() !== null && events.some(({ kind }) => kind === "refused"));
    expect(stranger.token()).toBeNull();
    expect(events.find(({ kind }) => kind === "refused")).toMatchObject({
      session: "aaaaaaaa11",
      error: { code: "GITHUB_UNEXPECTED" },
    });
    expect(town.minted.map(({ value }) => value)).toContain(control.token());
  });

  test("leaves alone what its keeper keeps, and takes over when that writer is gone", async () => {
    const { town, session, start, events } = await stage();
    const { directory, token } = await session("aaaaaaaa11");
    const writer = bystander();
    writeFileSync(join(directory, "token.writer"), JSON.stringify(markOf(writer.pid as number)));
    const control = await session("bbbbbbbb22");
    void start();
    await until("the daemon does it", () => control.token() !== null);
    expect([token(), events.some(({ session: id }) => id === "aaaaaaaa11")]).toEqual([null, false]);
    await killed(writer);
    await until("the daemon does it", () => token() !== null);
    expect(token()).toBe(town.minted[1]?.value);
  });

  test("has nothing to do with sessions that have no token, a masked one, or have ended, died or not begun", async () => {
    const { town, github, session, start } = await stage();
    const dead = bystander();
    const mark = markOf(dead.pid as number) as ProcessMark;
    await killed(dead);
    const others = [
      await session("aaaaaaaa11", { github: null }),
      await session("aaaaaaaa22", { github: { ...github, token: "masked" } }),
      await session("aaaaaaaa33", ended),
      await session("aaaaaaaa44", { keeper: mark }),
      await session("aaaaaaaa55", { phase: "starting" }),
    ];
    const control = await session("bbbbbbbb22");
    void start();
    await until("the daemon does it", () => control.token() !== null);
    expect(others.map(({ token }) => token())).toEqual([null, null, null, null, null]);
    expect(town.minted).toHaveLength(1);
  });

  test("ends with the last of the sessions that it was given", async () => {
    const { state, keeper, session, start, events } = await stage();
    const one = await session("aaaaaaaa11");
    const two = await session("aabbbbbb22");
    const other = await session("cccccccc33");
    const daemon = start(["aaa", "aab"]);
    await until("the daemon does it", () => one.token() !== null && two.token() !== null);
    removeSession(state, "aaaaaaaa11");
    await until("the daemon does it", () =>
      events.some(({ session: id, kind }) => id === "aaaaaaaa11" && kind === "left"),
    );
    await killed(keeper);
    await daemon;
    expect(events.at(-1)).toEqual({ session: "aabbbbbb22", kind: "left" });
    expect(other.token()).toBeNull();
  });

  test("says so where there is no token to be had, and tries again", async () => {
    const { town, session, start, events } = await stage();
    town.troubles.push({ status: 404, body: { message: "Not Found" } });
    const { directory } = await session("aaaaaaaa11");
    void start();
    await until("the daemon does it", () => events.some(({ kind }) => kind === "written"));
    expect(events.map(({ kind }) => kind)).toEqual(["taken", "refused", "left", "taken", "written"]);
    expect(events[1]).toMatchObject({ error: { code: "GITHUB_NOT_FOUND" }, retryInMs: 2_000 });
    // And where its directory is gone, but not its record, it does not mind.
    rmSync(directory, { recursive: true });
    await session("bbbbbbbb22").then((next) => until("the daemon does it", () => next.token() !== null));
  });

  test("refuses to serve what it cannot", async () => {
    const { github, session, start } = await stage();
    await session("aaaaaaaa11", { github: null });
    await session("bbbbbbbb22", { github: { ...github, token: "masked" } });
    await expect(start(["aaaaaaaa11"])).rejects.toThrow("Session aaaaaaaa11 has no token in a file.");
    await expect(start(["bbbb"])).rejects.toMatchObject({ hint: expect.stringContaining("only its keeper") });
    await expect(start(["zzzz"])).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
  });

  test("prints what it does, and ends well by a signal", async () => {
    const { town, world, session } = await stage();
    town.troubles.push({ status: 401, body: { message: "Bad credentials" } });
    const { token } = await session("aaaaaaaa11");
    const run = async (...flags: readonly string[]) => {
      let signal: () => void = () => {};
      const onSignal = (listener: (name: "SIGTERM") => void) => {
        signal = () => listener("SIGTERM");
        return () => {};
      };
      const ran = world.podbot(["token-daemon", "--all", ...flags], { onSignal });
      await until("the daemon does it", () => token() !== null);
      signal();
      return ran;
    };
    const { status, stdout, stderr } = await run();
    expect(status).toBe(0);
    expect(stdout.replace(/\d{4}-\S+Z/, "T")).toBe(
      [
        "its token is kept fresh from here",
        "its token is not kept fresh from here any more",
        "its token is kept fresh from here",
        "a token that is good until T",
        "its token is not kept fresh from here any more",
      ]
        .map((words) => `aaaaaaaa11: ${words}\n`)
        .join(""),
    );
    expect(stderr).toMatch(/^podbot: warning: aaaaaaaa11: GitHub does not accept the App's signature .*\n$/);
    rmSync(join(world.directory, "run/podbot/aaaaaaaa11/secrets/ghapp_token"));
    town.troubles.push({ status: 401, body: { message: "Bad credentials" } });
    const lines = (await run("--json")).stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines.map(({ kind }) => kind)).toEqual(["taken", "refused", "left", "taken", "written", "left"]);
    expect(`${stdout}${stderr}${JSON.stringify(lines)}`).not.toContain("ghs_");
  });

  test("is one writer, however many there are, and the next takes over when that one is killed", async () => {
    const { town, world, session } = await stage();
    const { directory, token } = await session("aaaaaaaa11");
    // One that died and could not give it back, for all of them to find.
    const dead = bystander();
    writeFileSync(join(directory, "token.writer"), JSON.stringify(markOf(dead.pid as number)));
    await killed(dead);
    const daemons = [1, 2, 3].map(() => {
      const child = world.spawn(["token-daemon", "--all"], { stdio: ["ignore", "pipe", "inherit"] });
      onTestFinished(() => void child.kill("SIGKILL"));
      const daemon = { child, said: "", exit: new Promise<unknown>((resolve) => child.once("close", resolve)) };
      child.stdout?.on("data", (part) => (daemon.said += part));
      return daemon;
    });
    const writers = () => daemons.filter(({ said }) => said.includes("good until"));
    await until("the daemon does it", () => writers().length > 0);
    // Long enough for the others to have looked, too.
    await setTimeout(5_000);
    expect([writers().length, town.minted.length]).toEqual([1, 1]);
    const [first] = writers();
    await killed(first?.child as ChildProcess);
    await until("the daemon does it", () => writers().length > 1);
    expect([writers().length, town.minted.length, token()]).toEqual([2, 2, town.minted[1]?.value]);
    // And those who are asked to end do so in order.
    for (const { child, exit } of daemons) {
      if (child === first?.child) continue;
      child.kill("SIGTERM");
      expect(await exit).toBe(0);
    }
    expect(holdLease(directory)).not.toBeNull();
  });

  test("goes by the owner's proxy", async () => {
    // A name that leads nowhere: only the proxy knows it.
    const name = "ghe.podbot.invalid";
    const { town, world, github, session } = await stage({ tls: true, name });
    await using proxy = await ConnectProxy.open({ places: { [`${name}:443`]: town.port }, login: "me:s3cr3t-w0rd" });
    const { token } = await session("aaaaaaaa11", { github: { ...github, apiUrl: `https://${name}/api/v3` } });
    const upstream = `[network]\nupstream_proxy = "${proxy.address()}"\n`;
    world.file("home/.config/podbot/config.toml", upstream, 0o600);
    world.env["NODE_EXTRA_CA_CERTS"] = town.trustFile;
    const child = world.spawn(["token-daemon", "--all"], { stdio: ["ignore", "ignore", "inherit"] });
    onTestFinished(() => void child.kill("SIGKILL"));
    await until("the daemon does it", () => token() !== null);
    expect([token(), proxy.asked]).toEqual([town.minted[0]?.value, [`${name}:443`]]);
  });

  test("wants to know whose tokens", async () => {
    const world = newWorld();
    expect(await world.podbot(["token-daemon"])).toMatchObject({ status: 2, stderr: expect.stringContaining("Whose") });
    expect((await world.podbot(["token-daemon", "--all", "abc"])).status).toBe(2);
  });
});
