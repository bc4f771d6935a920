import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { AuditEntry } from "../../src/gateway/audit.ts";
import { type Audit, openAudit } from "../../src/keeper/audit.ts";
import { readAuditEntries } from "../../src/keeper/audit-read.ts";
import type { SessionRecord } from "../../src/registry/record.ts";
import { readRecord } from "../../src/registry/store.ts";
import { eventually } from "../eventually.ts";
import { allow, Town } from "../gateway/stage.ts";
import { newWorld, type World } from "../world.ts";
import { sessionWorld, startDetached, startIdle } from "./terminal/remains.ts";

const id = "abcdefghij";

function stateOf(world: World): string {
  return join(world.home, ".local/state/podbot");
}

function open(world: World, of = id): Audit {
  const about = { agent: "custom", cwd: world.project, mode: "allowlist" } as const;
  return openAudit(stateOf(world), of, {
    about,
    onFailure: (error) => {
      throw error;
    },
  });
}

/** At noon of the reader's own clock, so that no test crosses midnight. */
function entry(more: Partial<AuditEntry> = {}): AuditEntry {
  return {
    at: new Date(2026, 0, 31, 12, 0, 0).toISOString(),
    kind: "http",
    verdict: "allowed",
    host: "api.example.com",
    port: 443,
    scheme: "https",
    method: "GET",
    path: "/v1/items",
    status: 200,
    rule: "--allow",
    sent: 120,
    received: 45_678,
    durationMs: 12.4,
    masked: 0,
    stripped: 0,
    ...more,
  };
}

function bare(kind: "dns" | "tcp" | "tls", more: Partial<AuditEntry>): AuditEntry {
  const { method, path, status, scheme, ...rest } = entry(more);
  return { ...rest, kind };
}

/** Without its heading, which names the directory and the time. */
async function rows(world: World, ...words: string[]): Promise<readonly string[]> {
  const { status, stdout, stderr } = await world.podbot(["audit", ...words]);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return stdout.trimEnd().split("\n").slice(1);
}

describe("podbot audit", () => {
  test("shows each thing that was asked for on a line, newest last", async () => {
    const world = newWorld();
    const audit = open(world);
    audit.write(entry({ masked: 1 }));
    audit.write(
      entry({ verdict: "refused", reason: "path", rule: null, method: "DELETE", path: "/v1/x", status: 403 }),
    );
    audit.write(bare("tls", { host: "cdn.example.com", durationMs: 83_000, received: 2_000_000_000 }));
    audit.write(bare("tcp", { host: "2001:db8::1", port: 5432, verdict: "failed", reason: "no answer", rule: null }));
    audit.write(bare("dns", { host: "name.example.com", port: 53 }));
    audit.write(entry({ scheme: "http", port: 80, at: new Date(2026, 1, 1, 9, 5, 7).toISOString(), stripped: 2 }));
    audit.write(entry({ scheme: "http", port: 8080, at: "never" }));
    audit[Symbol.dispose]();
    expect(await rows(world)).toEqual([
      "TIME      VERDICT  METHOD  WHERE                          STATUS   SENT  RECEIVED    TOOK  WHY",
      "2026-01-31",
      "12:00:00  allowed  GET     api.example.com/v1/items       200     120 B   45.7 kB   12 ms  --allow, masked 1",
      "12:00:00  refused  DELETE  api.example.com/v1/x           403     120 B   45.7 kB   12 ms  path",
      "12:00:00  allowed  tls     cdn.example.com                -       120 B    2.0 GB  83.0 s  --allow",
      "12:00:00  FAILED   tcp     [2001:db8::1]:5432             -       120 B   45.7 kB   12 ms  no answer",
      "2026-02-01",
      "09:05:07  allowed  GET     api.example.com/v1/items       200     120 B   45.7 kB   12 ms  --allow, stripped 2",
      "????-??-??",
      "??:??:??  allowed  GET     api.example.com:8080/v1/items  200     120 B   45.7 kB   12 ms  --allow",
    ]);
    expect((await rows(world, "--all")).some((line) => / dns +name\.example\.com +- /.test(line))).toBe(true);
    const { stdout } = await world.podbot(["audit", "abc"]);
    expect(stdout.split("\n")[0]).toMatch(
      new RegExp(`^${id}  custom in ${world.project}, network allowlist, first asked `),
    );
  });

  test("shows what has no end yet, and what will have none since its keeper was killed", async () => {
    const world = newWorld();
    const audit = open(world);
    const { verdict, status, sent, received, durationMs, ...about } = entry();
    audit.ahead({ opening: 1, ...about });
    audit.ahead({ opening: 2, ...about, path: "/done" });
    audit.ahead({ passing: 1, at: about.at, sent: 500_000, received: 7 });
    audit.write(entry({ opening: 2, path: "/done" }));
    await new Promise((resolve) => setImmediate(resolve));
    expect((await rows(world)).slice(2)).toEqual([
      "12:00:00  allowed  GET     api.example.com/done      200        120 B   45.7 kB  12 ms  --allow",
      "12:00:00  open     GET     api.example.com/v1/items  -       500.0 kB       7 B      -  --allow",
    ]);
    const file = join(stateOf(world), "audit", `${id}.jsonl`);
    const text = readFileSync(file, "utf8");
    writeFileSync(file, text.replace(/"started":"\d+"/, '"started":"1"'));
    expect((await rows(world)).at(-1)).toMatch(
      /^12:00:00 {2}LOST .* api\.example\.com\/v1\/items .* 500\.0 kB +7 B +- {2}its keeper was killed, --allow$/,
    );
    const { stdout } = await world.podbot(["audit", "--json", id]);
    expect(JSON.parse(stdout.trimEnd().split("\n").at(-1) as string)).toMatchObject({
      state: "lost",
      opening: 1,
      sent: 500_000,
    });
  });

  test("gives the lines as they were written as JSON", async () => {
    const world = newWorld();
    const audit = open(world);
    audit.write(entry());
    audit.write(bare("dns", {}));
    audit[Symbol.dispose]();
    const { stdout } = await world.podbot(["audit", "--json", id]);
    const lines = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines).toMatchObject([{ podbot: 1, id }, entry(), { kind: "dns" }, { endedAt: expect.any(String) }]);
  });

  test("shows what comes from inside without doing what it says", async () => {
    const world = newWorld();
    const hostile = "a\u001b]0;title\u0007\u001b[2J\u009b31m\rb\nc\td\u202egnp\u2066x\u007fe";
    using audit = open(world);
    audit.write(entry({ host: hostile, path: `/${hostile}`, method: hostile, rule: hostile, reason: hostile }));
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this is about.
    const acting = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/;
    const lines = await rows(world);
    expect(lines.length).toBe(3);
    expect(lines[2]).not.toMatch(acting);
    expect(lines[2]).toContain("\\x1b[2J\\x9b31m\\x0db\\nc\\td\\u202egnp");
    const { stdout } = await world.podbot(["audit", "--json"]);
    expect(stdout).not.toMatch(acting);
    expect(JSON.parse(stdout.split("\n")[1] as string)).toMatchObject({ host: hostile, path: `/${hostile}` });
  });

  test("skips torn lines, and says what is missing", async () => {
    const world = newWorld();
    using audit = open(world);
    audit.write(entry());
    appendFileSync(join(stateOf(world), "audit", `${id}.jsonl`), '{"lost":3}\n{"full":true}\n{"at":"torn');
    expect((await rows(world)).slice(3)).toEqual([
      "3 more could not be written down here.",
      "The audit is full: from here on nothing was let through.",
    ]);
  });

  test("shows ten thousand lines", async () => {
    const world = newWorld();
    using audit = open(world);
    for (let at = 0; at < 10_000; at++) audit.write(entry({ path: `/${at}` }));
    const lines = await rows(world);
    expect(lines.length).toBe(10_002);
    expect(lines.at(-1)).toContain("api.example.com/9999 ");
  });

  test("follows until the run is over", async () => {
    const world = newWorld();
    const audit = open(world);
    audit.write(entry({ path: "/first" }));
    const following = world.podbot(["audit", "--follow"]);
    audit.write(entry({ path: "/second" }));
    setTimeout(() => {
      audit.write(entry({ path: "/third" }));
      audit[Symbol.dispose]();
    }, 250);
    const { status, stdout } = await following;
    expect(status).toBe(0);
    expect(stdout.match(/\/(first|second|third)/g)).toEqual(["/first", "/second", "/third"]);
  });

  test("ends following at Ctrl-C, without an error", async () => {
    const world = newWorld();
    using audit = open(world);
    audit.write(entry());
    const onSignal = (listener: (signal: "SIGINT") => void) => {
      const timer = setTimeout(() => listener("SIGINT"), 250);
      return () => clearTimeout(timer);
    };
    const { status, stdout } = await world.podbot(["audit", "--follow"], { onSignal });
    expect(status).toBe(0);
    expect(stdout).toContain("/v1/items");
  });

  test("says where there is nothing to show", async () => {
    const world = newWorld();
    expect(await world.podbot(["audit"])).toMatchObject({ status: 125, stdout: "" });
    expect((await world.podbot(["audit"])).stderr).toContain("SESSION_NOT_FOUND");
    open(world, "xaaaaaaaaa").write(entry());
    open(world, "xbbbbbbbbb").write(entry());
    const ambiguous = await world.podbot(["audit", "x"]);
    expect(ambiguous.status).toBe(2);
    expect(ambiguous.stderr).toContain("SESSION_AMBIGUOUS");
    expect((await world.podbot(["audit", "y"])).stderr).toMatch(/The newest audits: xb{9}, xa{9}\.|xa{9}, xb{9}\./);
  });
});

describe("podbot audit of a session", () => {
  test("that has asked for nothing says so, while it runs and when it has ended", async () => {
    const world = sessionWorld();
    const idle = startIdle(world);
    const nothing = { status: 0, stdout: `Session ${idle} has asked for nothing.\n`, stderr: "" };
    expect(await world.podbot(["audit", idle])).toEqual(nothing);
    const following = world.podbot(["audit", "--follow", idle]);
    await world.podbot(["stop", "--time", "1ms", idle]);
    expect(await following).toEqual(nothing);
  });

  test("is out of the reach of every box", async () => {
    const world = sessionWorld();
    using audit = open(world);
    audit.write(entry());
    const look = `cat ${stateOf(world)}/audit/*; echo '{}' >> ${stateOf(world)}/audit/${id}.jsonl; rm -f ${stateOf(world)}/audit/*`;
    const { stdout } = await world.inside(look, "--rw", world.home);
    expect(stdout).toBe("");
    expect([...readAuditEntries(stateOf(world), id)]).toEqual([entry()]);
    expect(world.outside(look).stdout).toContain("api.example.com");
    expect(existsSync(join(stateOf(world), "audit", `${id}.jsonl`))).toBe(false);
  });
});

describe("podbot audit of a session whose keeper was killed", () => {
  const holding = `
import socket, ssl, time
def tls(name):
    context = ssl.create_default_context(); context.check_hostname = False; context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(socket.create_connection((name, 443)), server_hostname=name)
raw = socket.create_connection(("db.example.com", 5432)); raw.sendall(b"\\0binary")
passed = tls("passed.example.com"); passed.sendall(b"POST /a HTTP/1.1\\r\\nHost: passed.example.com\\r\\nContent-Length: 9\\r\\n\\r\\nx")
seen = tls("seen.example.com"); seen.sendall(b"POST /a/b HTTP/1.1\\r\\nHost: seen.example.com\\r\\nContent-Length: 9\\r\\n\\r\\nx")
time.sleep(600)
`;

  test("shows what was open then: a tunnel, TLS that was passed on, a request", async () => {
    const world = sessionWorld();
    await using town = new Town();
    let arrived = 0;
    const count = () => {
      arrived += 1;
    };
    await town.tcp("db.example.com", (socket) => socket.once("data", count));
    await town.https("passed.example.com", count);
    await town.https("seen.example.com", count);
    const rules = [{ host: "seen.example.com", path: "/a/**" }];
    allow(world, town, { network: { domains: ["db.example.com:5432", "passed.example.com"], rules } });
    world.file(join(world.project, "holding.py"), holding);
    const session = startDetached(world, ["python3", "holding.py"]);
    await eventually(() => expect(arrived).toBe(3));
    const shown = async () =>
      (await rows(world, session)).flatMap(
        (row) => /^[\d:]+ +(open|LOST) +(\S+) +(\S+)/.exec(row)?.slice(1).join(" ") ?? [],
      );
    const lines = (verdict: string) => [
      `${verdict} tcp db.example.com:5432`,
      `${verdict} tls passed.example.com`,
      `${verdict} POST seen.example.com/a/b`,
    ];
    expect(await shown()).toEqual(lines("open"));
    const record = readRecord(stateOf(world), session);
    process.kill((record as SessionRecord).keeper.pid, "SIGKILL");
    await eventually(async () => expect(await shown()).toEqual(lines("LOST")));
  });
});
