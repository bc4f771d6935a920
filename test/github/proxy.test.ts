import { readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { describe, expect, onTestFinished, test } from "vitest";
import { makeAuthority } from "../../src/gateway/authority.ts";
import { ConnectProxy, type ConnectProxyOptions } from "../upstream/connect-proxy.ts";
import { newWorld, type Outcome, type World } from "../world.ts";
import { Town } from "./town.ts";

/** A name that leads nowhere: only the proxy knows it. */
const name = "ghe.podbot.invalid";
const login = "me:s3cr3t-w0rd";
const traces = ["s3cr3t-w0rd", Buffer.from(login).toString("base64")];
const authority = makeAuthority(new Date());
const { certificatePem: cert, keyPem: key } = authority.leafFor("127.0.0.1");

async function stage(options: ConnectProxyOptions = {}) {
  const town = await Town.open({ tls: true, name });
  onTestFinished(() => town[Symbol.asyncDispose]());
  const proxy = await ConnectProxy.open({ places: { [`${name}:443`]: town.port }, ...options });
  onTestFinished(() => proxy[Symbol.asyncDispose]());
  const world = newWorld();
  world.file("home/app.pem", readFileSync(town.keyFile, "utf8"), 0o600);
  const roots = readFileSync(town.trustFile, "utf8") + authority.certificatePem;
  world.env["NODE_EXTRA_CA_CERTS"] = world.file("home/roots.pem", roots);
  world.env["HTTPS_PROXY"] = proxy.address();
  configure(world, town, `https://${name}/api/v3`);
  return { town, proxy, world };
}

function configure(world: World, { appId, installationId }: Town, apiUrl: string, more = ""): void {
  world.file(
    "home/.config/podbot/config.toml",
    `[github]
app_id = ${appId}
installation_id = ${installationId}
private_key_path = "~/app.pem"
api_url = "${apiUrl}"
${more}`,
  );
}

/** In a process of its own, which alone believes the town's authority. */
async function check(world: World, ...words: readonly string[]): Promise<Outcome> {
  const child = world.spawn(["github", "check", ...words], { stdio: ["ignore", "pipe", "pipe"] });
  const ended = new Promise<number>((resolve) => child.once("exit", (code) => resolve(code ?? -1)));
  const [stdout, stderr] = await Promise.all([text(child.stdout as never), text(child.stderr as never)]);
  return { status: await ended, stdout, stderr };
}

describe("podbot github check behind a proxy", () => {
  test.each<[string, ConnectProxyOptions]>([
    ["in the clear", {}],
    ["that wants to know who asks", { login }],
    ["that speaks TLS", { login, identity: { cert, key } }],
  ])("%s asks GitHub by it alone", async (_name, options) => {
    const { world, town, proxy } = await stage(options);
    const { status, stdout, stderr } = await check(world);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toContain(`ok       proxy             ${proxy.address(null)} (HTTPS_PROXY)\n`);
    expect(stdout).toContain("Tokens can be had.");
    expect(new Set(proxy.asked)).toEqual(new Set([`${name}:443`]));
    expect(town.asked).toEqual(["GET /app", "GET /app/installations/42"]);
    for (const trace of traces) expect(stdout + stderr).not.toContain(trace);
  });

  test("that the configuration names, and whose name nobody is shown", async () => {
    const { world, town, proxy } = await stage({ login });
    delete world.env["HTTPS_PROXY"];
    const network = `[network]\nupstream_proxy = "${proxy.address()}"\n`;
    configure(world, town, `https://${name}/api/v3`, network);
    expect((await check(world)).status).toBe(0);
    for (const words of [
      ["config", "show"],
      ["config", "show", "--json"],
    ]) {
      const { stdout } = await world.podbot(words);
      expect(stdout).toContain(proxy.address(null));
      for (const trace of traces) expect(stdout).not.toContain(trace);
    }
  });

  test.each<[string, ConnectProxyOptions, string]>([
    ["wants another", { login: "me:0ther" }, "does not accept the name and password (407)"],
    ["is out of order", { misbehave: (socket) => socket.end("HTTP/1.1 503 Busy\r\n\r\n") }, "answered 503"],
    ["hangs up", { misbehave: (socket) => socket.destroy() }, "hung up without an answer"],
  ])("that %s says so, and goes no other way", async (_name, options, words) => {
    const { world, town, proxy } = await stage(options);
    world.env["HTTPS_PROXY"] = proxy.address(login);
    const { status, stdout, stderr } = await check(world, "--json");
    expect(status).toBe(125);
    expect(stdout).toContain(`the proxy ${proxy.address(null)} (HTTPS_PROXY) ${words}`);
    expect(town.asked).toEqual([]);
    for (const trace of traces) expect(stdout + stderr).not.toContain(trace);
  });

  test("does not follow where an answer leads", async () => {
    const { world, town } = await stage();
    town.troubles.push({ status: 302, headers: { location: "http://127.0.0.1:9/" }, body: {} });
    const { status, stdout } = await check(world);
    expect([status, town.asked]).toEqual([125, ["GET /app"]]);
    expect(stdout).toContain('sends Podbot to "http://127.0.0.1:9/" (HTTP 302), and Podbot does not follow');
  });

  test("that is excepted, or for a server of this machine's, goes without it", async () => {
    const { world, town, proxy } = await stage();
    world.env["NO_PROXY"] = ".podbot.invalid";
    expect((await check(world)).status).toBe(125);
    delete world.env["NO_PROXY"];
    const plain = await Town.open();
    onTestFinished(() => plain[Symbol.asyncDispose]());
    configure(world, town, plain.app.apiUrl);
    expect((await check(world)).status).toBe(0);
    expect(proxy.asked).toEqual([]);
  });

  test("that nobody can use is told of before anybody is asked", async () => {
    const { world, town } = await stage();
    world.env["HTTPS_PROXY"] = "socks5://me:s3cr3t-w0rd@127.0.0.1:9";
    const { status, stderr } = await check(world);
    expect([status, town.asked]).toEqual([2, []]);
    expect(stderr).toContain("HTTPS_PROXY names no proxy that Podbot can use.");
    expect(stderr).not.toContain("s3cr3t-w0rd");
  });
});
