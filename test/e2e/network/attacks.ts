import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { EngineWorld } from "../engine-box.ts";
import type { TestEngine } from "../engines/engine.ts";
import { type NetworkBox, openNetworkBox, openTown, plainKey, realKey, type Seen } from "./box.ts";
import { killsKeeper } from "./keeper.ts";

export interface Ground {
  readonly title: string;
  /** Null: bubblewrap. */
  open(): Promise<TestEngine | null>;
  readonly hasIpv6?: boolean;
  /** Whether its processes are the host's. */
  readonly sharesKernel?: boolean;
}

/** What a box must not be able to do, whatever wall stands around it; and, each time, what it can. */
export function attacksOn(ground: Ground): void {
  const { title, open, hasIpv6 = true, sharesKernel = true } = ground;
  describe(`the network of a box on ${title}`, () => {
    let town: Awaited<ReturnType<typeof openTown>>;
    let box: NetworkBox;
    let seen: Seen;
    let engine: TestEngine | null;

    beforeAll(async () => {
      town = await openTown();
      engine = await open();
      box = await openNetworkBox(engine, town);
      seen = {};
      for (const part of ["names", "addresses", "requests", "credentials"]) {
        seen = { ...seen, ...(await box.probe(part)) };
      }
    });
    afterAll(async () => {
      await box?.[Symbol.asyncDispose]();
      await town?.[Symbol.asyncDispose]();
    });

    /** `200`, `403 host`, `400`, `error: Connection refused`. */
    const outcome = (name: string): string => {
      const heard = seen[name] ?? "it was not tried";
      const statuses = [...heard.matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status]) => status);
      if (statuses.length === 0) return heard;
      return [statuses.at(-1), /"reason": "(\w+)"/.exec(heard)?.[1]].filter((word) => word !== undefined).join(" ");
    };
    const outcomes = (prefix: string) =>
      Object.fromEntries(
        Object.keys(seen)
          .filter((name) => name.startsWith(prefix))
          .map((name) => [name.slice(prefix.length), outcome(name)]),
      );
    /** What the servers heard of a path, whatever its query. */
    const heard = (path: string) => town.heard.filter(({ url }) => url.split("?")[0] === path);

    test("has allowed hosts, and no others: these get an answer with words, in the clear and in TLS", () => {
      expect([outcome("allowed http"), outcome("allowed https")]).toEqual(["200", "200"]);
      for (const name of ["unlisted http", "unlisted https", "unlisted doh"]) {
        expect(outcome(name)).toBe("403 host");
        const answer = JSON.parse((seen[name] as string).split("\r\n\r\n")[1] as string);
        expect(answer).toMatchObject({
          code: "NETWORK_DENIED",
          rule: null,
          remedy: expect.stringContaining("--allow"),
        });
      }
      const lines = box.asked.filter(({ host, kind }) => host === "closed.example.com" && kind !== "dns");
      expect(lines.length).toBeGreaterThan(0);
      expect(lines.every(({ verdict }) => verdict === "refused")).toBe(true);
    });

    test("takes a wildcard for one label, whatever its case, and not for what it hangs on", () => {
      expect(["below a wildcard", "upper case", "far below a wildcard", "apex of a wildcard"].map(outcome)).toEqual([
        "200",
        "200",
        "403 host",
        "403 host",
      ]);
    });

    test("goes by path and method, and says which of them it was", () => {
      expect(["exact path", "wrong path", "longer path", "wrong method"].map(outcome)).toEqual([
        "200",
        "403 path",
        "403 path",
        "403 method",
      ]);
      expect(heard("/exact").map(({ method }) => method)).toEqual(["GET"]);
    });

    test("refuses paths that others may read otherwise, and passes none of them on", () => {
      const found = outcomes("path ");
      expect(Object.keys(found).length).toBeGreaterThan(14);
      const { "/EXACT": other, "/allowed/é": foreign, ...odd } = found;
      expect([other, foreign]).toEqual(["403 path", "400"]);
      expect(new Set(Object.values(odd))).toEqual(new Set(["403 spelling"]));
      expect(town.heard.filter(({ url }) => /secret|%|\\/.test(url) && !url.includes("?"))).toEqual([]);
    });

    test("wants one host, the same wherever it is named: on the line, in Host, in TLS, where it was dialled", () => {
      expect(new Set(Object.values(outcomes("other Host ")))).toEqual(new Set(["400"]));
      const others = ["absolute and other Host", "absolute elsewhere", "no Host", "two Hosts", "dot at the end"];
      expect(others.map(outcome)).toEqual(["400", "400", "400", "400", "400"]);
      expect(outcome("other name in TLS")).toMatch(/UNRECOGNIZED_NAME/);
      expect(outcome("allowed name in TLS, other Host")).toBe("400");
      // Where TLS names nobody, who was dialled counts.
      expect(outcome("no name in TLS")).toBe("200");
      expect(heard("/allowed/h")).toEqual([]);
    });

    test("judges tunnels, upgrades and where redirects lead by the same rules", () => {
      expect(outcomes("CONNECT ")).toEqual({
        "plain.example.com:80": "200",
        "closed.example.com:22": "403 host",
        "closed.example.com:80": "403 host",
        "127.0.0.1:22": "403 host",
        "closed.example.com": "400",
        "a@b:80": "400",
        "at the door of the web": "405",
      });
      expect(outcomes("upgrade, wrong ")).toEqual({ host: "403 host", path: "403 path", method: "403 method" });
      expect(seen["redirect"]).toMatch(/^HTTP\/1\.1 302 [\s\S]*location: http:\/\/closed\.example\.com\//i);
      expect(outcome("unlisted http")).toBe("403 host");
    });

    test("answers for every name by itself, in every way of asking, and carries nothing away in names", () => {
      const answers = Object.fromEntries(
        ["A", "AAAA", "TXT", "MX", "SRV", "NS", "ANY"].map((kind) => [kind, `code 0, answers ${kind === "A" ? 1 : 0}`]),
      );
      const { elsewhere, pointer, "after pointer": after, ...rest } = outcomes("dns ");
      const overTcp = Object.fromEntries(Object.entries(answers).map(([kind, told]) => [`tcp ${kind}`, told]));
      expect(rest).toEqual({ ...answers, ...overTcp });
      expect([elsewhere, after]).toEqual(["code 0, answers 1", "code 0, answers 1"]);
      expect(pointer).toBe("code 1, answers 0");
      expect(seen["addresses"]).toMatch(/^198\.(18|19)\.\d+\.\d+$/);
      expect(seen["long name"]).toMatch(/^198\.(18|19)\./);
    });

    test("has no way to an address, by whatever protocol", () => {
      for (const at of ["203.0.113.7", "169.254.169.254", "10.0.0.1", "127.0.0.1"]) {
        expect([outcome(`http to ${at}`), outcome(`tls to ${at}`)]).toEqual(["403 host", "403 host"]);
      }
      for (const at of ["2001:db8::7", ...(hasIpv6 ? ["::1"] : [])]) {
        for (const how of ["http", "tls"]) {
          if (hasIpv6) expect(outcome(`${how} to ${at}`)).toBe("403 host");
          else expect(outcome(`${how} to ${at}`)).toMatch(/unreachable|Cannot assign/);
        }
      }
      expect([outcome("ssh to an address"), outcome("server first")]).toEqual([
        "error: Connection refused",
        "error: Connection refused",
      ]);
      expect([outcome("udp 123"), outcome("udp 443")]).toEqual([
        "error: Connection refused",
        "error: Connection refused",
      ]);
      expect(outcome("udp six")).toMatch(/^error: /);
      for (const kind of ["raw socket", "packet socket", "sctp"]) expect(outcome(kind)).toMatch(/^error: /);
    });

    test("has doors and nothing else: no interface but loopback, no other port, no page of the gateway's own", () => {
      expect(seen["open ports"]).toBe("53 80 443 3128");
      const interfaces = [...(seen["/proc/net/dev"] ?? "").matchAll(/^ *(\S+):/gm)].map(([, name]) => name);
      expect(interfaces).toEqual(["lo"]);
      expect(new Set(Object.values(outcomes("gateway's own page")))).toEqual(new Set(["403 host"]));
    });

    test("leads to no address of the machine outside, in any spelling, unless a rule says so", () => {
      const {
        "where a rule says so": control,
        localhost: named,
        ...rest
      } = Object.fromEntries(
        Object.entries(outcomes("proxied ")).map(([name, told]) => [name.replace(/^to /, ""), told]),
      );
      expect([control, named]).toEqual(["200", "403 address"]);
      expect(new Set(Object.values(rest))).toEqual(new Set(["403 host", "400"]));
      expect(outcome("the machine's own server")).toBe("403 host");
      expect([heard("/local").length, heard("/control").length]).toEqual([0, 1]);
    });

    test("takes nothing of which two could think differently where it ends, and nothing without an end", () => {
      const odd = ["two lengths", "length and chunks", "odd chunks", "folded header", "space before colon"];
      expect(odd.map(outcome)).toEqual(["400", "400", "400", "400", "400"]);
      expect(["huge head", "many headers"].map(outcome)).toEqual(["431", "431"]);
      expect(heard("/smuggled")).toEqual([]);
    });

    test("shows a surrogate of the same shape for a masked key; what was passed in on purpose is there", () => {
      const key = seen["key"] as string;
      expect(key).toHaveLength(realKey.length);
      expect(key).toMatch(/^sk-ant-[A-Za-z0-9]+$/);
      expect(key).not.toBe(realKey);
      expect(seen["plain variable"]).toBe(plainKey);
      expect(seen["environment"]).not.toContain(realKey);
      expect(seen["environment"]).not.toContain("OWNERS_PLAIN_KEY");
    });

    test("puts the key in on its host, in its headers, over TLS, and nowhere else", () => {
      const key = seen["key"] as string;
      const basic = (words: string) => `Basic ${Buffer.from(words).toString("base64")}`;
      const of = (path: string) => heard(path).map(({ headers }) => headers);
      expect(of("/bearer")).toMatchObject([{ authorization: `Bearer ${realKey}` }]);
      expect(of("/own")).toMatchObject([{ "x-api-key": realKey }]);
      expect(of("/basic")).toMatchObject([{ authorization: basic(`user:${realKey}`) }]);
      expect(of("/user")).toMatchObject([{ authorization: basic(`${realKey}:`) }]);
      expect(of("/other")).toMatchObject([{ "x-other": key }]);
      expect(heard("/body")).toMatchObject([{ url: `/body?key=${key}`, body: `key=${key}` }]);
      expect(of("/allowed/elsewhere")).toMatchObject([{ authorization: `Bearer ${key}` }]);
      expect(of("/elsewhere")).toMatchObject([{ authorization: `Bearer ${key}` }]);
      expect(outcome("key: in the clear")).not.toBe("200");
      const masked = box.asked.filter(({ path }) => path === "/bearer" || path === "/other");
      expect(masked.map((line) => line.masked)).toEqual([1, 0]);
    });

    test("takes away credentials of others on that host, and keeps one where there are several", () => {
      const bearer = `Bearer ${realKey}`;
      const given = (path: string) => heard(path).map(({ headers }) => headers["authorization"]);
      expect([0, 1, 2].map((place) => given(`/place${place}`))).toEqual([[bearer], [bearer], [bearer]]);
      expect([given("/foreign"), given("/aws"), given("/near")]).toEqual([[undefined], [undefined], [undefined]]);
      expect(box.asked.find(({ path }) => path === "/foreign")).toMatchObject({ masked: 0, stripped: 2 });
      expect(box.asked.find(({ path }) => path === "/place1")).toMatchObject({ masked: 1, stripped: 2 });
    });

    test("never shows the key, even where a server gives back what it was sent", () => {
      const key = seen["key"] as string;
      const reflected = seen["key: reflected"] as string;
      expect(reflected).toMatch(new RegExp(`^x-echo: Bearer ${key}\r$`, "im"));
      expect(unchunked(reflected)).toContain(`you are Bearer ${key}`);
      // What comes compressed or in parts could not be searched, so it is not asked for.
      expect(seen["key: socket"]).toContain(`Bearer ${key} with nothing`);
      expect(heard("/part").map(({ headers }) => headers["range"])).toEqual([undefined]);
      // Nor as Basic has it, which anybody can read.
      const forms = [
        realKey,
        ...[`user:${realKey}`, `${realKey}:`].map((words) => Buffer.from(words).toString("base64")),
      ];
      expect(Object.keys(seen).filter((name) => forms.some((form) => seen[name]?.includes(form)))).toEqual([]);
    });

    test("leaves the key in no file and no process that can be read inside, and no key of the authority", async () => {
      const canary = "a-canary-of-the-control";
      await box.shell(`echo ${canary} >canary.txt`);
      const wanted = [canary, realKey, "PRIVATE KEY-----"].map((word) => Buffer.from(word).toString("base64"));
      const { found = "", processes } = await box.probe("places", wanted.join(","), box.world.directory);
      const hits = new Set(found.split("\n"));
      expect([...hits].filter((hit) => hit.endsWith("canary.txt 0")).length).toBeGreaterThan(0);
      expect([...hits].filter((hit) => !hit.endsWith(" 0"))).toEqual([]);
      // Nobody's processes but its own.
      expect(processes?.split(" ").length).toBeLessThan(12);
    });

    test("leaves the key in no log, no audit, no argument and nothing that the engine knows", async () => {
      const { world } = box;
      expect(await box.begin("wait")).toBe("waiting");
      const state = join(world.home, ".local/state/podbot");
      const files = filesBelow(state);
      expect(files.some((path) => path.includes("audit"))).toBe(true);
      const written = files.map((path) => readFileSync(path, "latin1")).join("\n");
      expect(written).toContain("api.example.com");
      expect(written).not.toContain(realKey);
      const arguments_ = readdirSync("/proc")
        .filter((name) => /^\d+$/.test(name))
        .map((pid) => [pid, readIfThere(`/proc/${pid}/cmdline`), readIfThere(`/proc/${pid}/environ`)] as const);
      const ofBox = arguments_.filter(([, , variables]) => variables.includes(`API_KEY=${seen["key"]}`));
      if (sharesKernel) expect(ofBox.length).toBeGreaterThan(0);
      expect(arguments_.filter(([, words]) => words.includes(realKey))).toEqual([]);
      expect(ofBox.filter(([, , variables]) => variables.includes(realKey))).toEqual([]);
      if (!(world instanceof EngineWorld)) return;
      const inspection = world.inspect(`podbot-${box.id}`).text;
      expect(inspection).toContain(box.id);
      expect(inspection).not.toContain(realKey);
    });

    test("is nobody else's: two boxes at once do not see each other, and each has a key and an authority of its own", async () => {
      await using other = await openNetworkBox(engine, town);
      expect(await other.begin("serve")).toBe("serving\t7777");
      // The control: what listens there can be reached by who is there.
      const reach = `python3 -c "import socket; socket.create_connection(('127.0.0.1', 7777), 5); print('reached')"`;
      expect(await other.shell(reach)).toBe("reached\n");
      const look = await box.probe("neighbour", (await other.shell("printenv API_KEY")).trim());
      expect(look["neighbour's port"]).toBe("error: Connection refused");
      expect(look["neighbour's port elsewhere"]).toBe("error: Connection refused");
      expect(look["neighbour's key"]).toMatch(/^HTTP\/1\.1 200 /);
      expect(heard("/neighbour").map(({ headers }) => headers["authorization"])).toEqual([undefined]);
      const read = 'printenv API_KEY; cat "$NODE_EXTRA_CA_CERTS"';
      expect(await box.shell(read)).not.toBe(await other.shell(read));
    });

    killsKeeper(open);
  });
}

function unchunked(answer: string): string {
  return answer.replaceAll(/\r\n[0-9a-f]+\r\n/g, "");
}

function filesBelow(directory: string): readonly string[] {
  return readdirSync(directory, { recursive: true, encoding: "utf8" })
    .map((name) => join(directory, name))
    .filter((path) => statSync(path).isFile());
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}
