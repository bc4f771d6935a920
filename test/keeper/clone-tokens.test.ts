// @module-tag security
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, rmSync } from "node:fs";
import { get } from "node:https";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as wait } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import type { JournalEvent } from "../../src/journal/event.ts";
import { readEvents } from "../../src/journal/read.ts";
import { eventually, until } from "../eventually.ts";
import { isClockSteady } from "../faults/thorough.ts";
import type { Town } from "../github/town.ts";
import type { World } from "../world.ts";
import { findValues, inClone, leftovers, openClone, repository, say, settle } from "./github-world.ts";

/** A test in which tokens live for seconds. */
const withTokens = test.runIf(isClockSteady);

/** Pushes some times a second until a file is there; says how often, and what git says where it fails. */
const pushUntil = (file: string) =>
  `n=0; while [ ! -e ${file} ]; do git commit -q --allow-empty -m $n && git push -q || exit 1
    n=$((n+1)); sleep 0.2; done; echo $n`;

withTokens(
  "pushes go on while the token is replaced every few seconds, and none fails; inside, each one is seen",
  async () => {
    const { world, town } = await settle({ tokenMs: 8_000 });
    const session = await openClone(world);
    const read = () => say(session.sandbox, "cat /run/secrets/ghapp_token").then(({ stdout }) => stdout);
    const seen = new Set([await read()]);
    const pushing = say(session.sandbox, pushUntil("/tmp/enough"));
    while (town.minted.length < 4) {
      await wait(200);
      seen.add(await read());
    }
    await eventually(async () => {
      seen.add(await read());
      expect(seen.size).toBeGreaterThanOrEqual(4);
    });
    await say(session.sandbox, "touch /tmp/enough");
    const { status, stdout, stderr } = await pushing;
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(Number(stdout)).toBeGreaterThan(4);
    expect(town.git.refused).toBe(0);
    // The first may have been replaced before anybody looked, and one more may have come meanwhile.
    const minted = town.minted.map(({ value }) => value);
    const first = minted.indexOf([...seen][0] ?? "");
    expect(first).toBeGreaterThanOrEqual(0);
    expect([...seen]).toEqual(minted.slice(first, first + seen.size));
  },
);

withTokens("no token stands in any argument, environment, log, record or audit, while git is at work", async () => {
  const { world, town } = await settle({ tokenMs: 10_000 });
  const session = await openClone(world);
  const state = join(world.home, ".local/state/podbot");
  const runtime = join(world.directory, "run/podbot");
  const values = () => town.minted.map(({ value }) => value);
  const secret = join(runtime, session.id, "secrets/ghapp_token");
  // Also while it is being written, beside the one before.
  const find = () => findValues(values(), [state, runtime]).filter((file) => !file.startsWith(secret));
  const pushing = say(session.sandbox, pushUntil("/tmp/enough"));
  for (let left = 50; town.minted.length < 2 || left > 0; left--) {
    expect(find()).toEqual([]);
    await wait(20);
  }
  await say(session.sandbox, "touch /tmp/enough");
  expect(await pushing).toMatchObject({ status: 0 });
  expect(town.minted.length).toBeGreaterThan(1);

  // What is looked for is found where it is: in the one file, and where somebody puts it.
  expect(findValues(values(), [runtime])).toContain(secret);
  const [token = ""] = values();
  const planted = world.file("home/.local/state/podbot/planted", `a line with ${token} in it`);
  const argument = spawn("sh", ["-c", "sleep 60; exit", token], { stdio: "ignore" });
  const environment = spawn("sleep", ["60"], { env: { ...process.env, TOKEN: token }, stdio: "ignore" });
  onTestFinished(() => [argument, environment].forEach((child) => void child.kill()));
  const places = [planted, `/proc/${argument.pid}/cmdline`, `/proc/${environment.pid}/environ`];
  await eventually(() => expect(find()).toEqual(expect.arrayContaining(places)));
  rmSync(planted);
});

withTokens("what an agent prints of its tokens is not kept, of later ones neither; when they came is", async () => {
  const { world, town } = await settle({ tokenMs: 3_000 });
  const script = "cat /run/secrets/ghapp_token; echo; sleep 4; cat /run/secrets/ghapp_token; echo; echo done";
  const session = await openClone(world, { args: ["sh", "-c", script] }, { detached: true });
  const agent = await session.run();
  const [printed] = await Promise.all([text(agent.stdout), agent.exited]);
  await session.stop();
  const [first, later] = printed.split("\n");
  expect(first).not.toBe(later);
  expect(town.minted.map(({ value }) => value)).toEqual(expect.arrayContaining([first, later]));
  const { stdout } = await world.podbot(["logs", session.id]);
  expect(stdout).toBe("[REDACTED]\n[REDACTED]\ndone\n");
  const journal = journalOf(world, session.id);
  expect(journal.filter(({ kind }) => kind === "token-written").length).toBeGreaterThan(1);
  expect(journal).toContainEqual(
    expect.objectContaining({ kind: "repository-cloned", repository: "example/name", branch: "main" }),
  );
  expect(
    findValues(
      town.minted.map(({ value }) => value),
      [join(world.home, ".local/state")],
    ),
  ).toEqual([]);
});

withTokens("a token that cannot be replaced is told in the journal, and one that can again is there", async () => {
  const { world, town } = await settle({ tokenMs: 4_000 });
  const session = await openClone(world, {}, { detached: true });
  town.troubles.push({ status: 503, body: "out of order" }, { status: 503 }, { status: 503 }, { status: 503 });
  await until("another token", () => town.minted.length >= 2);
  await eventually(async () => {
    const { stdout } = await say(session.sandbox, "cat /run/secrets/ghapp_token");
    expect(stdout).toBe(town.minted.at(-1)?.value);
  });
  await eventually(() => {
    const journal = journalOf(world, session.id);
    expect(journal.filter(({ kind }) => kind === "warning")).not.toEqual([]);
  });
  await session.stop();
});

withTokens(
  "masked, the token stays outside: what is inside opens nothing, and stays as it is while the other is replaced",
  async () => {
    const { world, town } = await settle({ tls: true, tokenMs: 10_000 }, ['token = "masked"']);
    const env = { ...world.env, NODE_EXTRA_CA_CERTS: town.trustFile };
    const push = "git commit -q --allow-empty -m x && git push -q && cat /run/secrets/ghapp_token && echo";
    const script = `${push} && sleep 11 && ${push}`;
    const child = world.spawn(["run", ...repository, "--quiet", "--agent", "custom", "--", "sh", "-c", script], {
      env: env as NodeJS.ProcessEnv,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const output = [child.stdout, child.stderr].map((stream) => text(stream as NodeJS.ReadableStream as never));
    const [[status], stdout = "", stderr] = await Promise.all([once(child, "exit"), ...output]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const [first = "", second] = stdout.split("\n");
    expect(first).toMatch(/^ghs_/);
    expect(second).toBe(first);
    expect(town.minted.length).toBeGreaterThan(1);
    expect(town.minted.map(({ value }) => value)).not.toContain(first);
    expect(town.git.refused).toBe(0);
    // Out here it opens nothing, and the other does.
    expect(await statusOf(town, first)).toBe(401);
    expect(await statusOf(town, town.minted.at(-1)?.value as string)).toBe(200);
    expect(leftovers(world)).toEqual([]);
  },
);

withTokens(
  "masked, a token may be of any length: whoever has read the surrogate before still gets in with it",
  async () => {
    const { world, town } = await settle({ tls: true, tokenMs: 10_000, growing: true }, ['token = "masked"']);
    const address = `${town.origin.replace("://", "://x-access-token:$old@")}/example/name.git`;
    const read = "$(cat /run/secrets/ghapp_token)";
    const script = `old=${read}; sleep 11; git ls-remote -q "${address}" >/dev/null && echo $old && echo ${read}; git push -q`;
    const child = world.spawn(["run", ...repository, "--quiet", "--agent", "custom", "--", "sh", "-c", script], {
      env: { ...world.env, NODE_EXTRA_CA_CERTS: town.trustFile } as NodeJS.ProcessEnv,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const output = [child.stdout, child.stderr].map((stream) => text(stream as NodeJS.ReadableStream as never));
    const [[status], stdout = "", stderr] = await Promise.all([once(child, "exit"), ...output]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const [first = "", second = ""] = stdout.split("\n");
    expect(second.length).toBeGreaterThan(first.length);
    expect(town.git.refused).toBe(0);
    for (const surrogate of [first, second]) expect(await statusOf(town, surrogate)).toBe(401);
  },
);

test("masked, no cookie of the box's own goes to GitHub", async () => {
  const { world, town } = await settle({ tls: true }, ['token = "masked"']);
  const url = `${town.origin}/example/name.git/info/refs?service=git-upload-pack`;
  const send = `curl -s -o /dev/null -H 'Cookie: user_session=another' ${url}`;
  const child = world.spawn(["run", ...repository, "--quiet", "--agent", "custom", "--", "sh", "-c", send], {
    env: { ...world.env, NODE_EXTRA_CA_CERTS: town.trustFile } as NodeJS.ProcessEnv,
    stdio: ["ignore", "inherit", "inherit"],
  });
  await once(child, "exit");
  expect(town.cookies).toEqual([]);
  // Where it is not masked, nobody takes it out.
  const plain = await settle();
  const there = `${plain.town.origin}/example/name.git/info/refs`;
  await inClone(plain.world, `curl -s -o /dev/null -H 'Cookie: user_session=another' ${there}`);
  expect(plain.town.cookies).toEqual(["user_session=another"]);
});

function journalOf(world: World, id: string): readonly JournalEvent[] {
  return readEvents(join(world.home, ".local/state/podbot/sessions", id)).events;
}

/** What the town says to git with this password. */
function statusOf({ origin, trustFile }: Town, password: string): Promise<number | undefined> {
  const url = `${origin}/example/name.git/info/refs?service=git-upload-pack`;
  return new Promise((resolve, reject) => {
    get(url, { ca: readFileSync(trustFile), auth: `x-access-token:${password}` }, (response) => {
      response.resume();
      resolve(response.statusCode);
    }).once("error", reject);
  });
}
