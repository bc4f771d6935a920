import { readdirSync, readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { Outside } from "../gateway/kit.ts";
import { readEntries } from "../gateway/stage.ts";
import { ConnectProxy, type ConnectProxyOptions } from "../upstream/connect-proxy.ts";
import { newWorld, type World } from "../world.ts";

const outside = new Outside();
afterAll(() => outside[Symbol.asyncDispose]());

/** A name that leads nowhere: only the proxy knows it. */
const host = "api.podbot.invalid";
const login = "me:s3cr3t-w0rd";
const traces = ["s3cr3t-w0rd", Buffer.from(login).toString("base64")];
const key = "sk-real-0123456789abcdef";

const web = outside.http((_, response) => response.end("plain\n"));
const secure = outside.https(host, (request, response) =>
  response.end(`${request.headers.authorization === `Bearer ${key}` ? "key" : "no key"}\n`),
);

async function stage(options: ConnectProxyOptions = {}): Promise<{ world: World; proxy: ConnectProxy }> {
  const places = { [`${host}:80`]: await web, [`${host}:443`]: await secure };
  const proxy = await ConnectProxy.open({ places, login, ...options });
  onTestFinished(() => proxy[Symbol.asyncDispose]());
  const world = newWorld();
  world.env["HTTPS_PROXY"] = proxy.address();
  world.env["SSL_CERT_FILE"] = outside.trustFile;
  return { world, proxy };
}

describe("podbot sandbox behind a proxy", () => {
  test("reaches by it what is allowed, and shows its password to nobody", async () => {
    const { world, proxy } = await stage();
    world.env["KEY"] = key;
    world.file(
      "home/.config/podbot/config.json",
      JSON.stringify({
        network: { domains: [host] },
        secrets: { KEY: { env: "KEY", hosts: [host] } },
        environment: { set: { KEY: "!secret KEY" } },
      }),
    );
    const script = [
      `curl -sS http://${host}/`,
      `curl -sS -H "Authorization: Bearer $KEY" https://${host}/`,
      'curl -sS http://other.podbot.invalid/ | grep -o \'"reason": "host"\'',
      "env",
    ].join("; ");
    const { stdout, stderr } = await world.inside(script);
    expect(stdout).toMatch(/^plain\nkey\n"reason": "host"\n/);
    expect(new Set(proxy.asked)).toEqual(new Set([`${host}:80`, `${host}:443`]));
    const audit = (await world.podbot(["audit", "--json"])).stdout;
    expect(readEntries(audit).filter(({ kind, verdict }) => kind === "http" && verdict === "allowed")).toHaveLength(2);
    const shown = [
      (await world.inside("true", "--dry-run")).stdout,
      (await world.inside("true", "--dry-run", "--json")).stdout,
      (await world.inside("true", "--debug")).stderr,
    ];
    for (const each of shown) expect(each).toContain(`${proxy.address(null)}`);
    for (const trace of traces) expect([stdout, stderr, audit, ...shown].join("\n")).not.toContain(trace);
    for (const trace of traces) expect(filesWith(world, trace)).toEqual([]);
    expect(filesWith(world, "!secret KEY")).toHaveLength(1);
  });

  test("says in its plan what the proxy decides, and what goes without it", async () => {
    const { world, proxy } = await stage();
    world.env["NO_PROXY"] = ".corp, 10.0.0.0/8";
    const { stdout } = await world.inside("true", "--dry-run", "--allow", host);
    expect(stdout).toContain(`# network: proxy  ${proxy.address(null)} (HTTPS_PROXY), but not to .corp, 10.0.0.0/8\n`);
    expect(stdout).toContain("# network: proxy  Names are resolved once more by the proxy: private addresses are");
    const { network } = JSON.parse((await world.inside("true", "--dry-run", "--json")).stdout);
    expect(network.proxy).toMatchObject({ url: proxy.address(null), origin: "HTTPS_PROXY" });
    for (const env of [{ PODBOT_NETWORK_UPSTREAM_PROXY: "none" }, { HTTPS_PROXY: "" }]) {
      const plan = await world.podbot(["sandbox", "--dry-run", "--json", "--", "true"], {
        env: { ...world.env, ...env },
      });
      expect(JSON.parse(plan.stdout).network.proxy).toBeUndefined();
    }
    // What cannot be used is nobody's question where there is no way out at all.
    const env = { ...world.env, HTTPS_PROXY: "socks5://x" };
    expect((await world.podbot(["sandbox", "--network", "none", "--", "true"], { env })).status).toBe(0);
    expect((await world.podbot(["sandbox", "--", "true"], { env })).stderr).toContain("HTTPS_PROXY names no proxy");
  });

  test("reaches nothing where the proxy is gone; with it, the same host", async () => {
    const { world, proxy } = await stage();
    const ask = () => world.inside(`curl -sS http://${host}/`, "--allow", host);
    expect((await ask()).stdout).toBe("plain\n");
    const shown = proxy.address(null);
    await proxy[Symbol.asyncDispose]();
    const { stdout } = await ask();
    expect(stdout).toContain(`the proxy ${shown} (HTTPS_PROXY) cannot be reached`);
    for (const trace of traces) expect(stdout).not.toContain(trace);
  });

  test("does not let a project name one, unless it is trusted", async () => {
    const { world, proxy } = await stage();
    delete world.env["HTTPS_PROXY"];
    world.file("home/project/.podbot/config.toml", `[network]\nupstream_proxy = "${proxy.address()}"\n`);
    const ask = () => world.inside(`curl -sS http://${host}/`, "--allow", host);
    const refused = await ask();
    expect([refused.status, proxy.asked]).toEqual([2, []]);
    expect(refused.stderr).toContain(`network.upstream_proxy = "${proxy.address(null)}"`);
    for (const trace of traces) expect(refused.stderr).not.toContain(trace);
    expect((await world.podbot(["trust"])).stdout).not.toContain(traces[0]);
    expect((await ask()).stdout).toBe("plain\n");
  });

  test("names the password in no argument list and no file, while a session runs and after it", async () => {
    const { world, proxy } = await stage();
    const script = `curl -sS http://${host}/; echo "$HTTPS_PROXY"; until [ -e go ]; do sleep 0.05; done`;
    const words = ["run", "--allow", host, "--agent", "custom", "--", "sh", "-c", script];
    const child = world.spawn(words, { stdio: ["ignore", "pipe", "pipe"] });
    const output = Promise.all([text(child.stdout as never), text(child.stderr as never)]);
    const ended = new Promise((resolve) => child.once("exit", resolve));
    await expect.poll(() => proxy.asked).toEqual([`${host}:80`]);
    for (const trace of traces) expect(commandLines().filter((line) => line.includes(trace))).toEqual([]);
    expect(commandLines().some((line) => line.includes(host))).toBe(true);
    world.file("home/project/go");
    await ended;
    expect((await output)[0]).toBe("plain\n\n");
    for (const trace of traces) expect(filesWith(world, trace)).toEqual([]);
  });
});

function commandLines(): readonly string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        return readFileSync(`/proc/${name}/cmdline`, "latin1");
      } catch {
        // It has ended meanwhile.
        return [];
      }
    });
}

/** The files of a world that hold a text, whoever has written them. */
function filesWith({ directory }: World, wanted: string): readonly string[] {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => `${parentPath}/${name}`)
    .filter((path) => readFileSync(path, "latin1").includes(wanted));
}
