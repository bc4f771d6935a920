// @module-tag security
import { execFileSync } from "node:child_process";
import { createSocket } from "node:dgram";
import { Resolver } from "node:dns/promises";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { connect as connectSecurely, rootCertificates } from "node:tls";
import { afterAll, describe, expect, test } from "vitest";
import { defaultLayer, mergeLayers } from "../../src/config/merge.ts";
import { auditFile } from "../../src/keeper/audit-files.ts";
import { type Egress, prepareEgress } from "../../src/keeper/egress.ts";
import { openSecrets } from "../../src/keeper/secrets.ts";
import type { Operation } from "../../src/plan/plan.ts";
import type { NetworkPolicy } from "../../src/policy/network.ts";
import { readRule } from "../../src/policy/network-rules.ts";
import { trustPlaces } from "../../src/policy/trust-variables.ts";
import { newSessionId } from "../../src/registry/store.ts";
import { Town } from "../gateway/stage.ts";
import { planFor } from "../plan/ordinary.ts";

const directory = realpathSync(mkdtempSync(join(tmpdir(), "podbot-egress-")));
afterAll(() => rmSync(directory, { recursive: true }));

const [first = "", second = ""] = rootCertificates;
const nothing: NetworkPolicy = { learn: false, rules: [], secrets: [], reach: {} };
const { config } = mergeLayers([defaultLayer()]);

/** A place of its own, of which `project` is what the box may write. */
class Place {
  readonly root = realpathSync(mkdtempSync(join(directory, "place-")));
  readonly state = this.path("state");
  readonly id = newSessionId();

  constructor(files: Readonly<Record<string, string>> = {}) {
    for (const name of ["project", "state", "own"]) mkdirSync(this.path(name));
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(dirname(this.path(name)), { recursive: true });
      writeFileSync(this.path(name), content);
    }
  }

  path(name: string): string {
    return join(this.root, name);
  }

  egress(env: Readonly<Record<string, string>> = {}, policy: NetworkPolicy = nothing) {
    const source = this.path("project");
    const operations: readonly Operation[] = [
      { kind: "bind", source, target: source, access: "rw", identity: null, why: "" },
      ...Object.values(trustPlaces).map((target): Operation => ({ kind: "trust", target, why: "" })),
    ];
    const plan = { ...planFor([], {}), operations };
    const secrets = openSecrets(config, { env });
    return prepareEgress({ plan, policy, secrets, env, state: this.state, id: this.id, agent: "custom" });
  }

  /** What the box is told of whom the caller trusts. */
  trusted(env: Readonly<Record<string, string>>) {
    using egress = this.egress(env);
    const text = (target: string) => `${Buffer.from(egress.trust.find((file) => file.target === target)?.bytes ?? "")}`;
    return { bundle: text(trustPlaces.bundle), authority: text(trustPlaces.authority), own: ownOf(egress) };
  }
}

/** The session's authority: what is there of it besides what the caller has added. */
function ownOf({ trust }: Egress): string {
  const bytes = trust.find(({ target }) => target === trustPlaces.authority)?.bytes ?? new Uint8Array();
  return `${Buffer.from(bytes)}`.match(/-----BEGIN[\s\S]*?-----END CERTIFICATE-----\n/g)?.at(-1) ?? "";
}

describe("of the lists of certificates that the caller names, the box gets", () => {
  const key = "-----BEGIN PRIVATE KEY-----\nhidden\n-----END PRIVATE KEY-----\n";

  test("the certificates, and nothing else of those files", () => {
    const place = new Place({ "own/list": `# hidden\n${first}\n${key}`, "own/more": `${key}${second}\nhidden` });
    const { bundle, authority, own } = place.trusted({
      ...{ SSL_CERT_FILE: place.path("own/list"), NODE_EXTRA_CA_CERTS: place.path("own/more") },
    });
    expect(bundle).toBe(`${first}\n${second}\n\n${own}\n`);
    expect(authority).toBe(`${second}\n${own}\n`);
  });

  test.each(["link", "file"])("nothing where the agent may write: a %s", (kind) => {
    const place = new Place({ "own/list": first, "project/file": first });
    symlinkSync("../own/list", place.path("project/link"));
    const { bundle, authority, own } = place.trusted({
      ...{ SSL_CERT_FILE: place.path(`project/${kind}`), NODE_EXTRA_CA_CERTS: place.path(`project/${kind}`) },
    });
    expect(authority).toBe(`\n${own}\n`);
    // Then it is the system's list.
    expect(bundle.length).toBeGreaterThan(10_000);
    const control = place.trusted({ NODE_EXTRA_CA_CERTS: place.path("own/list") });
    expect(control.authority).toBe(`${first}\n${control.own}\n`);
  });

  test("nothing of a pipe or a device, for which nobody waits, nor of what has no certificates", () => {
    const place = new Place({ "own/text": "hidden" });
    execFileSync("mkfifo", [place.path("own/pipe")]);
    for (const path of [place.path("own/pipe"), "/dev/zero", place.path("own/text"), place.path("own")]) {
      const { bundle, authority, own } = place.trusted({ SSL_CERT_FILE: path, NODE_EXTRA_CA_CERTS: path });
      expect(authority).toBe(`\n${own}\n`);
      expect(bundle.length).toBeGreaterThan(10_000);
    }
  });

  test.runIf(existsSync("/etc/ssl/certs/ca-certificates.crt"))("the system's own list as it is", () => {
    const system = "/etc/ssl/certs/ca-certificates.crt";
    const { bundle } = new Place().trusted({ SSL_CERT_FILE: system });
    expect(bundle.startsWith(readFileSync(system, "utf8"))).toBe(true);
  });
});

describe("the gateway itself believes", () => {
  /** What a server answers through the gateway whose authority is in a list of the caller's. */
  async function ask(list: string): Promise<string> {
    await using town = new Town();
    await town.https("api.example.org", (_, response) => response.end("reached"));
    const place = new Place({
      "own/list": town.authority.certificatePem,
      "project/list": town.authority.certificatePem,
    });
    symlinkSync("../project", place.path("own/link"));
    const rules = [readRule({ host: "api.example.org", port: 443, path: "/**" }, "test")];
    using egress = place.egress({ SSL_CERT_FILE: place.path(list) }, { ...nothing, rules, reach: town.reach });
    const server = createServer().listen(0, "127.0.0.1");
    const dns = createSocket("udp4");
    await once(server, "listening");
    egress.serve({ tcp: new Map([[3128, server]]), dns, [Symbol.asyncDispose]: async () => {} });
    const plain = connect((server.address() as AddressInfo).port, "127.0.0.1");
    plain.write("CONNECT api.example.org:443 HTTP/1.1\r\nHost: api.example.org:443\r\n\r\n");
    await once(plain, "data");
    const socket = connectSecurely({ socket: plain, servername: "api.example.org", ca: ownOf(egress) });
    socket.write("GET / HTTP/1.1\r\nHost: api.example.org\r\nConnection: close\r\n\r\n");
    let answer = "";
    for await (const chunk of socket.setEncoding("utf8")) answer += chunk;
    server.close();
    dns.close();
    return answer;
  }

  test("whom a list of the owner's names, and not one that the agent may write", async () => {
    expect(await ask("own/list")).toContain("reached");
    expect(await ask("project/list")).toContain("502 ");
    expect(await ask("own/link/list")).toContain("502 ");
  });
});

describe("what cannot be written down", () => {
  /** Doors on loopback, and what is behind them. */
  async function open(place: Place, policy = nothing) {
    const egress = place.egress({}, policy);
    const server = createServer().listen(0, "127.0.0.1");
    const dns = createSocket("udp4").bind(0, "127.0.0.1");
    await Promise.all([once(server, "listening"), once(dns, "listening")]);
    const { port } = server.address() as AddressInfo;
    egress.serve({ tcp: new Map([[3128, server]]), dns, [Symbol.asyncDispose]: async () => {} });
    const resolver = new Resolver({ tries: 1 });
    resolver.setServers([`127.0.0.1:${dns.address().port}`]);
    return {
      /** The whole answer; empty where the door is shut. */
      async ask(): Promise<string> {
        const socket = connect(port, "127.0.0.1");
        socket.on("error", () => {});
        socket.write("GET http://api.example.org/ HTTP/1.1\r\nHost: api.example.org\r\nConnection: close\r\n\r\n");
        let answer = "";
        socket.setEncoding("utf8").on("data", (text: string) => {
          answer += text;
        });
        await once(socket, "close");
        return answer;
      },
      /** A connection that waits. */
      async knock() {
        const socket = connect(port, "127.0.0.1");
        socket.on("error", () => {});
        await once(socket, "connect");
        return { closed: once(socket, "close") };
      },
      lookUp: () => resolver.resolve4("api.example.org"),
      async [Symbol.asyncDispose]() {
        egress[Symbol.dispose]();
        server.close();
        dns.close();
      },
    };
  }

  test("ends what is open and shuts the doors, until it can be", async () => {
    const place = new Place();
    await using doors = await open(place);
    expect(await doors.ask()).toContain("403 ");
    const waiting = await doors.knock();
    rmSync(dirname(auditFile(place.state, place.id)), { recursive: true });
    writeFileSync(join(place.state, "audit"), "in the way");
    // By then it has happened.
    await doors.ask();
    await waiting.closed;
    expect(await doors.lookUp()).toHaveLength(1);
    expect(await doors.ask()).toBe("");
    expect(await doors.ask()).toBe("");
    rmSync(join(place.state, "audit"));
    expect(await doors.ask()).toContain("403 ");
    expect(readFileSync(auditFile(place.state, place.id), "utf8")).toContain('"lost":');
  });

  test("since the file is full shuts them for good, and names that are looked up open none", async () => {
    const place = new Place();
    const file = auditFile(place.state, place.id);
    mkdirSync(dirname(file));
    writeFileSync(file, "");
    truncateSync(file, 64 * 1024 * 1024);
    await using town = new Town();
    await town.http("api.example.org");
    const rules = [readRule({ host: "api.example.org", port: 80 }, "test")];
    const policy = { ...nothing, rules, reach: town.reach };
    await using doors = await open(place, policy);
    for (let at = 0; at < 3; at++) {
      expect(await doors.ask()).not.toContain("200 ");
      expect(await doors.lookUp()).toHaveLength(1);
    }
    expect(town.heard.length).toBe(0);
    // In another run there is room.
    await using others = await open(new Place(), policy);
    expect(await others.ask()).toContain("200 ");
    expect(await others.ask()).toContain("200 ");
    expect(town.heard.length).toBe(2);
  });
});
