import { readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { describe, expect, onTestFinished, test } from "vitest";
import { appKey, Town } from "../github/town.ts";
import { ConnectProxy } from "../upstream/connect-proxy.ts";
import { newWorld, type Outcome, type World } from "../world.ts";
import { configOf, repository } from "./github-world.ts";

/** A name that leads nowhere: only the proxy knows it. */
const name = "ghe.podbot.invalid";
const login = "me:s3cr3t-w0rd";

async function stage(): Promise<{ readonly world: World; readonly town: Town; readonly proxy: ConnectProxy }> {
  const town = await Town.open({ tls: true, name });
  onTestFinished(() => town[Symbol.asyncDispose]());
  const proxy = await ConnectProxy.open({ places: { [`${name}:443`]: town.port }, login });
  onTestFinished(() => proxy[Symbol.asyncDispose]());
  const world = newWorld();
  const privateKeyPath = world.file("home/.config/podbot/keys/app.pem", appKey, 0o600);
  const app = { ...town.app, privateKeyPath, apiUrl: `https://${name}/api/v3` };
  world.file("home/.config/podbot/config.toml", configOf({ app }, ["[environment]", 'pass = ["GIT_SSL_CAINFO"]']));
  // What companies have their people write, and what nobody inside can use.
  world.file("home/.gitconfig", '[http]\n\tproxy = "http://127.0.0.1:9"\n');
  const roots = world.file("home/roots.pem", readFileSync(town.trustFile, "utf8"));
  Object.assign(world.env, { NODE_EXTRA_CA_CERTS: roots, HTTPS_PROXY: proxy.address() });
  return { world, town, proxy };
}

/** In a process of its own, which alone believes the town's authority. */
async function inClone(world: World, script: string, ...flags: readonly string[]): Promise<Outcome> {
  const words = ["run", "--quiet", ...repository, ...flags, "--agent", "custom", "--", "sh", "-c", script];
  const child = world.spawn(words, { stdio: ["ignore", "pipe", "pipe"] });
  const ended = new Promise<number>((resolve) => child.once("exit", (code) => resolve(code ?? -1)));
  const [stdout, stderr] = await Promise.all([text(child.stdout as never), text(child.stderr as never)]);
  return { status: await ended, stdout, stderr };
}

describe("a clone behind a proxy", () => {
  test("comes through the gateway and the proxy, and so does what is pushed", async () => {
    const { world, town, proxy } = await stage();
    const push = "git commit -q --allow-empty -m second && git push -q";
    const { status, stdout, stderr } = await inClone(world, `git log --oneline | wc -l; ${push}; env`);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toMatch(/^1\n/);
    expect(stdout).not.toContain("s3cr3t-w0rd");
    expect(new Set(proxy.asked)).toEqual(new Set([`${name}:443`]));
    expect(town.asked).toContain("POST /app/installations/42/access_tokens");
    expect(town.git.served).toBeGreaterThan(0);
  });

  test("with an open network is told of the proxy, and the agent is not", async () => {
    const { world, proxy } = await stage();
    world.file("home/.gitconfig", "");
    world.env["GIT_SSL_CAINFO"] = world.env["NODE_EXTRA_CA_CERTS"];
    const script = `git log --oneline | wc -l; env | grep -i proxy; git ls-remote -q || echo no way`;
    const { status, stdout, stderr } = await inClone(world, script, "--network", "open");
    expect([status, stdout], stderr).toEqual([0, "1\nno way\n"]);
    expect(new Set(proxy.asked)).toEqual(new Set([`${name}:443`]));
  });

  test("fails where the proxy does, and the password is not in what is said", async () => {
    const { world, town, proxy } = await stage();
    world.env["HTTPS_PROXY"] = proxy.address("me:0ther-w0rd");
    const { status, stderr } = await inClone(world, "true");
    expect(status).not.toBe(0);
    expect(stderr).toContain(`the proxy ${proxy.address(null)} (HTTPS_PROXY) does not accept the name and password`);
    expect([town.asked, stderr.includes("0ther-w0rd")]).toEqual([[], false]);
  });
});
