// @module-tag security
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { afterAll, describe, expect, test } from "vitest";
import { FilesystemError, SessionError } from "../../src/errors.ts";
import type { AuditEntry, AuditOpening } from "../../src/gateway/audit.ts";
import { type AuditOptions, openAudit } from "../../src/keeper/audit.ts";
import { findAudit } from "../../src/keeper/audit-files.ts";
import { type AuditLine, parseAuditLine } from "../../src/keeper/audit-line.ts";
import { readAudit, readAuditEntries } from "../../src/keeper/audit-read.ts";
import { markOf } from "../../src/machine/process-mark.ts";
import { failure } from "../failure.ts";

const root = mkdtempSync(join(tmpdir(), "podbot-audit-"));
afterAll(() => rmSync(root, { recursive: true }));

const id = "abcdefghij";
const about = { agent: "custom", cwd: "/home/me/project", mode: "allowlist" } as const;

function newState(): string {
  return mkdtempSync(join(root, "state-"));
}

function fileOf(state: string, of = id): string {
  return join(state, "audit", `${of}.jsonl`);
}

function entry(more: Partial<AuditEntry> = {}): AuditEntry {
  return {
    at: "2026-01-31T12:00:00.000Z",
    kind: "http",
    verdict: "allowed",
    host: "api.example.com",
    port: 443,
    scheme: "https",
    method: "GET",
    path: "/",
    status: 200,
    rule: "network.domains",
    sent: 10,
    received: 20,
    durationMs: 1.5,
    masked: 0,
    stripped: 0,
    ...more,
  };
}

function opening(number: number): AuditOpening {
  const { verdict, status, sent, received, durationMs, ...rest } = entry();
  return { opening: number, ...rest };
}

/** An audit that must not fail. */
function open(state: string, options: Partial<AuditOptions> = {}, of = id) {
  const onFailure = (error: Error) => {
    throw error;
  };
  return openAudit(state, of, { about, onFailure, ...options });
}

function linesIn(state: string, of = id): readonly Record<string, unknown>[] {
  return readFileSync(fileOf(state, of), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
}

/** A process of its own, which has an audit and an entry, and counts failures. */
async function program(state: string, body: string): Promise<string> {
  const outfile = join(state, "program.mjs");
  const source = join(import.meta.dirname, "../../src/keeper/audit.ts");
  const contents = `import { openAudit } from ${JSON.stringify(source)};
    let failures = 0;
    const onFailure = () => { failures += 1; };
    const audit = openAudit(${JSON.stringify(state)}, "${id}", { about: ${JSON.stringify(about)}, onFailure });
    const entry = ${JSON.stringify(entry())};
    const opened = ${JSON.stringify(opening(0))};
    ${body}`;
  const stdin = { contents, resolveDir: root };
  await build({ stdin, bundle: true, platform: "node", format: "esm", outfile, logLevel: "error" });
  return outfile;
}

describe("an audit", () => {
  test("of a run that asks for nothing is not there", () => {
    const state = newState();
    open(state)[Symbol.dispose]();
    expect(readdirSync(state)).toEqual([]);
  });

  test("says whose it is, what was asked for, and that it is over", () => {
    const state = newState();
    const audit = open(state, { now: () => new Date("2026-01-31T12:00:00.000Z") });
    audit.write(entry());
    expect(lstatSync(join(state, "audit")).mode & 0o777).toBe(0o700);
    expect(lstatSync(fileOf(state)).mode & 0o777).toBe(0o600);
    audit.write(entry({ host: "evil\n\u001b[2J\u009b", path: '/"\n{"endedAt":"x"}' }));
    audit[Symbol.dispose]();
    audit[Symbol.dispose]();
    const time = "2026-01-31T12:00:00.000Z";
    expect(linesIn(state)).toEqual([
      { podbot: 1, id, startedAt: time, ...about, keeper: markOf(process.pid) },
      entry(),
      entry({ host: "evil\n\u001b[2J\u009b", path: '/"\n{"endedAt":"x"}' }),
      { endedAt: time },
    ]);
    expect([...readAuditEntries(state, id)].length).toBe(2);
  });

  test("has a beginning in the file before anything else happens, and its end by the end of the turn", async () => {
    const state = newState();
    using audit = open(state);
    expect(audit.ahead(opening(1))).toBe(true);
    expect(linesIn(state).slice(1)).toEqual([opening(1)]);
    audit.write(entry({ opening: 1 }));
    await new Promise((resolve) => setImmediate(resolve));
    expect(linesIn(state).slice(1)).toEqual([opening(1), entry({ opening: 1 })]);
    // An end that waits is written with what follows it.
    audit.ahead(opening(2));
    audit.write(entry({ opening: 2 }));
    audit.ahead(opening(3));
    expect(linesIn(state).slice(3)).toEqual([opening(2), entry({ opening: 2 }), opening(3)]);
    audit.ahead({ dropped: 3, at: "x" });
    audit.ahead({ passing: 2, at: "x", sent: 1, received: 2 });
    expect(linesIn(state).slice(6)).toEqual([
      { dropped: 3, at: "x" },
      { passing: 2, at: "x", sent: 1, received: 2 },
    ]);
  });

  test("that is nearly full opens nothing for whose end there is no room, and takes all ends", () => {
    const state = newState();
    let failures = 0;
    const audit = open(state, { limit: 8_000, onFailure: () => failures++ });
    let opened = 0;
    while (audit.ahead(opening(opened + 1))) opened += 1;
    expect(opened).toBeGreaterThan(3);
    expect(failures).toBe(1);
    expect(audit.ahead({ passing: 1, at: "x", sent: 1, received: 2 })).toBe(true);
    for (let at = 1; at <= opened; at++) audit.write(entry({ opening: at, reason: "x".repeat(300) }));
    audit[Symbol.dispose]();
    expect(failures).toBe(1);
    expect([...readAuditEntries(state, id)].map((each) => each.opening)).toEqual(
      Array.from({ length: opened }, (_, at) => at + 1),
    );
    expect(lstatSync(fileOf(state)).size).toBeLessThan(8_300);
  });

  test("of which the ends are missing tells what is open, and what was lost with its keeper", async () => {
    const state = newState();
    const words = await program(
      state,
      `for (const opening of [1, 2, 3]) audit.ahead({ ...opened, opening });
       audit.ahead({ passing: 2, at: "x", sent: 7, received: 8 });
       audit.write({ ...entry, opening: 1 });
       audit.ahead({ dropped: 3, at: "x" });
       await new Promise((resolve) => setImmediate(resolve));
       process.kill(process.pid, "SIGKILL");`,
    );
    const child = spawn(process.execPath, [words], { stdio: ["ignore", "inherit", "inherit"] });
    await once(child, "close");
    using audit = open(state);
    audit.ahead(opening(1));
    const unended = async (follow: boolean) =>
      (await collect(state, { follow })).flatMap((line) => (line.kind === "unended" ? [line.unended] : []));
    const expected = [
      { state: "lost", ...opening(2), sent: 7, received: 8 },
      { state: "open", ...opening(1), sent: 0, received: 0 },
    ];
    expect(await unended(false)).toEqual(expected);
    expect([...readAuditEntries(state, id)].map(({ opening: number, verdict }) => [number, verdict])).toEqual([
      [1, "allowed"],
      [2, "allowed"],
      [1, "allowed"],
    ]);
    const following = unended(true);
    setTimeout(() => {
      audit.write(entry({ opening: 1 }));
      audit[Symbol.dispose]();
    }, 150);
    // Told once, though it is read again and again.
    expect(await following).toEqual(expected);
  });

  test("keeps ten thousand entries, in order", () => {
    const state = newState();
    using audit = open(state);
    for (let at = 0; at < 10_000; at++) audit.write(entry({ port: at }));
    let expected = 0;
    for (const { port } of readAuditEntries(state, id)) expect(port).toBe(expected++);
    expect(expected).toBe(10_000);
  });

  test("loses nothing that was written when its process is killed", async () => {
    const state = newState();
    const words = await program(
      state,
      `for (let port = 0; port < 500; port++) audit.write({ ...entry, port });
       process.kill(process.pid, "SIGKILL");`,
    );
    const child = spawn(process.execPath, [words], { stdio: ["ignore", "inherit", "inherit"] });
    expect(await once(child, "close")).toEqual([null, "SIGKILL"]);
    expect([...readAuditEntries(state, id)].map(({ port }) => port)).toEqual([...Array(500).keys()]);
    // It does not say that it is over, but its reader finds out.
    const lines = await collect(state, { follow: true });
    expect(lines.length).toBe(501);
  });

  test("is bounded: it says once that it is full, and each further entry has failed", () => {
    const state = newState();
    const failures: Error[] = [];
    const audit = open(state, { limit: 2_000, onFailure: (error) => failures.push(error) });
    expect(audit.recover()).toBe(true);
    for (let at = 0; at < 100; at++) audit.write(entry());
    expect(audit.recover()).toBe(false);
    // A name that is looked up leads nowhere.
    audit.write(entry({ kind: "dns" }));
    audit[Symbol.dispose]();
    const lines = linesIn(state);
    const written = [...readAuditEntries(state, id)].length;
    expect(written).toBeGreaterThan(3);
    expect(failures.length).toBe(100 - written);
    expect(failures[0]?.message).toContain("it is as large as it may become");
    expect(lines.filter(({ full }) => full === true).length).toBe(1);
    expect(lines.slice(-3)).toMatchObject([{ lost: failures.length }, { unlisted: 1 }, { endedAt: expect.anything() }]);
    expect(lstatSync(fileOf(state)).size).toBeLessThan(2_300);
  });

  test("lists names that are looked up to a bound of their own, beyond which it counts them", () => {
    const state = newState();
    const audit = open(state, { limit: 20_000, nameLimit: 2_000 });
    for (let at = 0; at < 10_000; at++) audit.write(entry({ kind: "dns", port: 53 }));
    for (let at = 0; at < 20; at++) audit.write(entry());
    audit[Symbol.dispose]();
    const entries = [...readAuditEntries(state, id)];
    const names = entries.filter(({ kind }) => kind === "dns").length;
    expect(names).toBeGreaterThan(3);
    expect(entries.length - names).toBe(20);
    const told = linesIn(state).flatMap(({ unlisted }) => (unlisted === undefined ? [] : [unlisted]));
    expect(told).toEqual([1, 10_000 - names]);
    expect(lstatSync(fileOf(state)).size).toBeLessThan(20_000);
  });

  test("that names alone have filled counts them, and lets nothing else pass", () => {
    const state = newState();
    let failures = 0;
    const audit = open(state, { limit: 2_000, onFailure: () => failures++ });
    for (let at = 0; at < 100; at++) audit.write(entry({ kind: "dns" }));
    expect(failures).toBe(0);
    audit.write(entry());
    expect(failures).toBe(1);
    audit[Symbol.dispose]();
    expect(linesIn(state).filter(({ unlisted }) => unlisted !== undefined).length).toBe(2);
  });

  test("goes on where a keeper comes back to its box, after a line that was torn, too", () => {
    const state = newState();
    const first = open(state);
    first.write(entry({ port: 1 }));
    appendFileSync(fileOf(state), '{"at":"torn');
    using second = open(state);
    second.write(entry({ port: 2 }));
    expect([...readAuditEntries(state, id)].map(({ port }) => port)).toEqual([1, 2]);
  });

  test("is not written through a link", () => {
    const state = newState();
    mkdirSync(join(state, "audit"));
    const victim = join(state, "victim");
    writeFileSync(victim, "");
    symlinkSync(victim, fileOf(state));
    const failures: Error[] = [];
    using audit = open(state, { onFailure: (error) => failures.push(error) });
    audit.write(entry());
    expect(failures).toMatchObject([{ code: "FILESYSTEM", details: { errno: "ELOOP" } }]);
    expect(readFileSync(victim, "utf8")).toBe("");
  });

  test("is nobody's who has no proper id", () => {
    expect(() => open(newState(), {}, "../../../x")).toThrow(SessionError);
  });
});

describe("what cannot be written", () => {
  test("is told each time, counted, and said in the file when that can be written again", () => {
    const state = newState();
    const failures: Error[] = [];
    const audit = open(state, { onFailure: (error) => failures.push(error) });
    writeFileSync(join(state, "audit"), "in the way");
    audit.write(entry({ port: 1 }));
    audit.write(entry({ port: 2 }));
    expect(failures.length).toBe(2);
    expect(failures[0]).toBeInstanceOf(FilesystemError);
    expect(failures[0]?.message).toMatch(/ENOTDIR/);
    rmSync(join(state, "audit"));
    audit.write(entry({ port: 3 }));
    audit[Symbol.dispose]();
    expect(failures.length).toBe(2);
    expect(linesIn(state)).toMatchObject([{ podbot: 1 }, { lost: 2 }, { port: 3 }, { endedAt: expect.anything() }]);
    expect(existsSync(fileOf(state))).toBe(true);
  });

  test("since there is no room is told, and what was written before stays", async () => {
    const state = newState();
    const body = `for (let port = 0; port < 100; port++) audit.write({ ...entry, port });
      process.stdout.write(String(failures));`;
    const words = [process.execPath, await program(state, body)];
    // The kernel cuts the line that goes beyond, as it does on a full disk.
    const child = spawn("sh", ["-c", 'ulimit -f 16; exec "$@"', "sh", ...words], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let told = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      told += text;
    });
    expect(await once(child, "close")).toEqual([0, null]);
    const kept = [...readAuditEntries(state, id)].map(({ port }) => port);
    expect(kept).toEqual([...Array(kept.length).keys()]);
    expect(kept.length).toBeGreaterThan(5);
    expect(Number(told)).toBe(100 - kept.length);
    using audit = open(state);
    audit.write(entry({ port: 7777 }));
    expect([...readAuditEntries(state, id)].at(-1)?.port).toBe(7777);
  });

  test("is told at the end, if that is when it can be", () => {
    const state = newState();
    const audit = open(state, { onFailure: () => {} });
    writeFileSync(join(state, "audit"), "in the way");
    audit.write(entry());
    rmSync(join(state, "audit"));
    mkdirSync(join(state, "audit"));
    audit[Symbol.dispose]();
    expect(linesIn(state)).toMatchObject([{ podbot: 1 }, { lost: 1 }, { endedAt: expect.anything() }]);
  });

  test("is what comes to a file that was removed, and to one that is closed", () => {
    const state = newState();
    let failures = 0;
    const audit = open(state, { onFailure: () => failures++ });
    audit.write(entry({ port: 1 }));
    rmSync(fileOf(state));
    audit.write(entry({ port: 2 }));
    expect(failures).toBe(1);
    audit.write(entry({ port: 3 }));
    expect(linesIn(state)).toMatchObject([{ podbot: 1 }, { lost: 1 }, { port: 3 }]);
    audit[Symbol.dispose]();
    audit.write(entry({ port: 4 }));
    expect(failures).toBe(2);
  });
});

describe("of many audits", () => {
  const letters = [..."abcdefghij"];
  const ids = letters.map((letter) => letter.repeat(10));

  /** Oldest first. */
  function leave(state: string, all: readonly string[], text = `${JSON.stringify({ endedAt: "x" })}\n`): void {
    mkdirSync(join(state, "audit"), { recursive: true });
    for (const [at, one] of all.entries()) {
      writeFileSync(fileOf(state, one), text);
      utimesSync(fileOf(state, one), 1_000 + at, 1_000 + at);
    }
  }

  test("the newest stay when a new one is made", () => {
    const state = newState();
    leave(state, ids);
    writeFileSync(join(state, "audit", "notes"), "");
    mkdirSync(fileOf(state, "kkkkkkkkkk"));
    using audit = open(state, { keep: 4 }, "zzzzzzzzzz");
    expect(readdirSync(join(state, "audit")).length).toBe(12);
    audit.write(entry());
    const expected = [...ids.slice(-3), "kkkkkkkkkk", "zzzzzzzzzz"].map((one) => `${one}.jsonl`);
    expect(readdirSync(join(state, "audit")).sort()).toEqual([...expected, "notes"].sort());
  });

  test("those of runs that go on stay, however old, and those of dead ones go", () => {
    const state = newState();
    const keeper = markOf(process.pid) as NonNullable<ReturnType<typeof markOf>>;
    const header = (mark: unknown) => `${JSON.stringify({ podbot: 1, id, startedAt: "x", ...about, keeper: mark })}\n`;
    const line = `${JSON.stringify(entry())}\n`;
    leave(state, [ids[0] as string], header(keeper) + line);
    leave(state, [ids[1] as string], `${header(keeper)}${line}${JSON.stringify({ endedAt: "x" })}\n`);
    leave(state, [ids[2] as string], header({ ...keeper, started: "1" }) + line);
    leave(state, [ids[3] as string], line);
    leave(state, [ids[4] as string], "");
    using audit = open(state, { keep: 1 }, "zzzzzzzzzz");
    audit.write(entry());
    expect(readdirSync(join(state, "audit")).sort()).toEqual([`${ids[0]}.jsonl`, "zzzzzzzzzz.jsonl"]);
  });

  test("the one that was written to last is found where none is named, and any by the beginning of its id", () => {
    const state = newState();
    leave(state, ["abcaaaaaaa", "abdaaaaaaa", "xyzaaaaaaa"]);
    utimesSync(fileOf(state, "abdaaaaaaa"), 9_000, 9_000);
    expect(findAudit(state, undefined)).toBe("abdaaaaaaa");
    expect(findAudit(state, "x")).toBe("xyzaaaaaaa");
    expect(findAudit(state, "podbot-abcaaaaaaa")).toBe("abcaaaaaaa");
    const several = failure(SessionError, () => findAudit(state, "ab"));
    expect(several).toMatchObject({ code: "SESSION_AMBIGUOUS", details: { ids: ["abdaaaaaaa", "abcaaaaaaa"] } });
    const none = failure(SessionError, () => findAudit(state, "xyzaaaaaab"));
    expect(none).toMatchObject({ code: "SESSION_NOT_FOUND", details: { nearest: "xyzaaaaaaa" } });
    expect(none.hint).toBe("Did you mean xyzaaaaaaa? The newest audits: abdaaaaaaa, xyzaaaaaaa, abcaaaaaaa.");
  });

  test("there are none before the first", () => {
    const state = newState();
    expect(failure(SessionError, () => findAudit(state, undefined))).toMatchObject({ code: "SESSION_NOT_FOUND" });
    expect(failure(SessionError, () => findAudit(state, "x")).hint).toBe("No run has asked for anything yet.");
    writeFileSync(join(state, "audit"), "in the way");
    expect(failure(FilesystemError, () => findAudit(state, undefined)).message).toMatch(/ENOTDIR/);
  });
});

async function collect(
  state: string,
  { follow, signal = new AbortController().signal }: { follow: boolean; signal?: AbortSignal },
  onBatch: (lines: readonly AuditLine[]) => void = () => {},
): Promise<readonly AuditLine[]> {
  const all: AuditLine[] = [];
  for await (const batch of readAudit(state, id, { follow, signal })) {
    all.push(...batch);
    onBatch(all);
  }
  return all;
}

describe("reading an audit", () => {
  test("gives nothing where there is none", async () => {
    const state = newState();
    expect(await collect(state, { follow: false })).toEqual([]);
    expect(await collect(state, { follow: true })).toEqual([]);
    expect([...readAuditEntries(state, id)]).toEqual([]);
  });

  test("follows one that grows, until it says that it is over", async () => {
    const state = newState();
    const audit = open(state);
    audit.write(entry({ port: 1 }));
    let told = 0;
    const lines = await collect(state, { follow: true }, (all) => {
      const ports = all.flatMap((line) => (line.kind === "entry" ? [line.entry.port] : []));
      if (ports.length === told) return;
      told = ports.length;
      if (told < 4) audit.write(entry({ port: told + 1 }));
      else audit[Symbol.dispose]();
    });
    expect(lines.map(({ kind }) => kind)).toEqual(["header", "entry", "entry", "entry", "entry", "ended"]);
  });

  test("waits for the rest of a line", async () => {
    const state = newState();
    using audit = open(state);
    audit.write(entry());
    const text = JSON.stringify(entry({ port: 7 }));
    appendFileSync(fileOf(state), text.slice(0, 30));
    const lines = await collect(state, { follow: true }, (all) => {
      expect(all.length).toBeLessThan(5);
      if (all.length === 2) appendFileSync(fileOf(state), `${text.slice(30)}\n{"endedAt":"x"}\n`);
    });
    expect(lines.map(({ kind }) => kind)).toEqual(["header", "entry", "entry", "ended"]);
  });

  test("ends when it is told to", async () => {
    const state = newState();
    using audit = open(state);
    audit.write(entry());
    const stop = new AbortController();
    const lines = await collect(state, { follow: true, signal: stop.signal }, () => stop.abort());
    expect(lines.length).toBe(2);
    expect(await collect(state, { follow: true, signal: stop.signal })).toEqual([]);
  });

  test("goes on with a keeper that has come back", async () => {
    const state = newState();
    mkdirSync(join(state, "audit"));
    const mark = { ...(markOf(process.pid) as NonNullable<ReturnType<typeof markOf>>), started: "1" };
    const dead = { podbot: 1, id, startedAt: "x", ...about, keeper: mark };
    writeFileSync(fileOf(state), `${JSON.stringify(dead)}\n${JSON.stringify(entry())}\n`);
    const audit = open(state);
    audit.write(entry());
    const lines = await collect(state, { follow: true }, (all) => {
      if (all.length === 4) audit[Symbol.dispose]();
    });
    expect(lines.map(({ kind }) => kind)).toEqual(["header", "entry", "header", "entry", "ended"]);
  });

  test("skips what is damaged", () => {
    const header = { podbot: 1, id, startedAt: "x", ...about, keeper: null };
    expect(parseAuditLine(JSON.stringify(header))?.kind).toBe("header");
    const damaged = [
      "",
      "x",
      "[]",
      "{}",
      '{"lost":-1}',
      '{"unlisted":-1}',
      '{"full":1}',
      '{"endedAt":1}',
      JSON.stringify({ ...header, podbot: 2 }),
      JSON.stringify({ ...header, keeper: 1 }),
      JSON.stringify({ ...header, keeper: { pid: 1 } }),
      JSON.stringify({ ...entry(), host: 1 }),
      JSON.stringify({ ...entry(), verdict: "maybe" }),
      JSON.stringify({ ...entry(), rule: 1 }),
    ];
    for (const text of damaged) expect(parseAuditLine(text), text).toBeNull();
  });
});
