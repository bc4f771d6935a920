import { join } from "node:path";
import { parse } from "smol-toml";
import { describe, expect, test } from "vitest";
import type { AuditEntry } from "../../src/gateway/audit.ts";
import { openAudit } from "../../src/keeper/audit.ts";
import { newWorld, type World } from "../world.ts";

const id = "abcdefghij";

function entry(more: Partial<AuditEntry> = {}): AuditEntry {
  return {
    at: "2026-01-31T12:00:00.000Z",
    kind: "http",
    verdict: "allowed",
    host: "api.example.com",
    port: 443,
    scheme: "https",
    method: "GET",
    path: "/v1/items",
    status: 200,
    rule: null,
    sent: 0,
    received: 0,
    durationMs: 1,
    masked: 0,
    stripped: 0,
    ...more,
  };
}

function learned(...entries: AuditEntry[]): World {
  const world = newWorld();
  const about = { agent: "custom", cwd: world.project, mode: "learn" } as const;
  using audit = openAudit(join(world.home, ".local/state/podbot"), id, {
    about,
    onFailure: (error) => {
      throw error;
    },
  });
  for (const one of entries) audit.write(one);
  return world;
}

describe("podbot policy suggest", () => {
  test("prints rules that can be put into a configuration, and are read there", async () => {
    const world = learned(
      entry(),
      entry({ method: "POST", path: "/v1/items/12345" }),
      entry({ kind: "tls", host: "cdn.example.com" }),
      entry({ kind: "tcp", host: "db.example.com", port: 5432, verdict: "refused", reason: "host" }),
      entry({ host: "gone.example.com", verdict: "failed", reason: "gone.example.com is not known", status: 502 }),
    );
    const { status, stdout, stderr } = await world.podbot(["policy", "suggest", "abc"]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toBe(`# What session abcdefghij has asked for. Read it before you allow it.

[network]
domains = [
  "cdn.example.com:443", # asked for once
  "db.example.com:5432", # asked for once, and refused
]

# asked for once
[[network.rules]]
host = "api.example.com"
port = 443
methods = ["GET"]
paths = ["/v1/items"]

# asked for once
[[network.rules]]
host = "api.example.com"
port = 443
methods = ["POST"]
paths = ["/v1/items/*"]

# Left out: "gone.example.com:443" failed once: "gone.example.com is not known".
`);
    world.file("config.toml", stdout);
    const shown = await world.podbot(["config", "show", "--json", "--config", join(world.directory, "config.toml")]);
    expect(JSON.parse(shown.stdout).config.network.domains).toEqual(["cdn.example.com:443", "db.example.com:5432"]);
    expect(JSON.parse(shown.stdout).config.network.rules.length).toBe(2);
  });

  test("prints hosts alone, and JSON", async () => {
    const world = learned(entry(), entry());
    const { stdout } = await world.podbot(["policy", "suggest", "--hosts-only", "--json"]);
    const domains = [{ domain: "api.example.com:443", asked: 2, refused: 0 }];
    expect(JSON.parse(stdout)).toEqual({ session: id, domains, rules: [], remarks: [] });
  });

  test("is not led astray by what comes from inside", async () => {
    const hostile = 'x"\n[network]\nmode = "open"\u001b[2J\u009b\u202e';
    const world = learned(entry({ host: hostile }), entry({ path: `/${hostile}` }), entry({ method: hostile }));
    const { stdout } = await world.podbot(["policy", "suggest"]);
    expect(parse(stdout)).toEqual({});
    expect(stdout).toMatch(/^[\x20-\x7e\n]*$/);
  });

  test("copes with ten thousand entries", async () => {
    const world = learned(...Array.from({ length: 10_000 }, (_, at) => entry({ path: `/v1/x${at}-y/z` })));
    const { stdout } = await world.podbot(["policy", "suggest"]);
    expect(stdout).toContain('paths = ["/v1/**"]');
    expect(stdout).toContain("# asked for 10000 times");
  });

  test("says where there is nothing to go by, and what it can do", async () => {
    const world = newWorld();
    expect((await world.podbot(["policy", "suggest"])).stderr).toContain("SESSION_NOT_FOUND");
    expect(await world.podbot(["policy", "suggest", "x"])).toMatchObject({ status: 125 });
    expect(await world.podbot(["policy", "make"])).toMatchObject({ status: 2 });
    expect(await world.podbot(["policy"])).toMatchObject({ status: 2 });
  });
});
