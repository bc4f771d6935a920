import { execFile } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { build } from "esbuild";
import { afterAll, describe, expect, test } from "vitest";
import { ping } from "../../src/engine/ping.ts";
import { openPrivateService, type ServiceOptions } from "../../src/engine/service.ts";
import { readServiceFacts } from "../../src/engine/service-facts.ts";
import { renderServiceSettings } from "../../src/engine/service-settings.ts";
import { connectTo, directory, failureOf, freshPath } from "./engine-server.ts";

/** Stands in for Podman's service: it writes down how it was started, and answers pings until nobody asks any more. */
const program = `#!${process.execPath}
const { appendFileSync } = require("node:fs");
const { createServer } = require("node:http");
const args = process.argv.slice(2);
appendFileSync(process.env.CONTAINERS_TEST_LOG, JSON.stringify({ pid: process.pid, args, env: process.env }) + "\\n");
if (process.env.CONTAINERS_TEST_FAIL) {
  console.error("Error: cannot set up namespace");
  process.exit(125);
}
const seconds = Number(args.find((arg) => arg.startsWith("--time=")).slice(7));
const server = createServer((request, response) => {
  timer.refresh();
  response.writeHead(200, { "api-version": "1.41", "libpod-api-version": "4.3.1" }).end("OK");
});
const timer = setTimeout(() => process.exit(0), seconds * 1000);
setTimeout(() => server.listen(args.at(-1).slice("unix://".length)), 150);
`;

const podman = join(directory, "podman");
writeFileSync(podman, program);
chmodSync(podman, 0o755);

interface Start {
  readonly pid: number;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

const logs: string[] = [];
afterAll(() => {
  for (const { pid } of logs.flatMap(startsIn)) if (existsSync(`/proc/${pid}`)) process.kill(pid, "SIGKILL");
});

function startsIn(log: string): readonly Start[] {
  return existsSync(log)
    ? readFileSync(log, "utf8")
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as Start)
    : [];
}

function prepare(env: Readonly<Record<string, string>> = {}) {
  const log = freshPath("log");
  logs.push(log);
  const options: ServiceOptions = {
    podman,
    directory: freshPath("service"),
    uid: process.getuid?.() ?? 0,
    idleSeconds: 20,
    env: {
      PATH: `${dirname(process.execPath)}:/usr/bin:/bin`,
      HOME: freshPath("home"),
      CONTAINERS_TEST_LOG: log,
      ...env,
    },
  };
  return { options, starts: () => startsIn(log) };
}

describe("a Podman service of our own", () => {
  test("is started once, closed to others, and found again", async () => {
    const { options, starts } = prepare({ SECRET: "x", http_proxy: "http://proxy" });
    const endpoint = await openPrivateService(options);
    expect(endpoint).toEqual({ kind: "unix", path: join(options.directory, "podman.sock") });
    await ping(connectTo(endpoint.path));
    expect(statSync(endpoint.path).mode & 0o777).toBe(0o600);
    expect(statSync(options.directory).mode & 0o777).toBe(0o700);
    expect(await openPrivateService(options)).toEqual(endpoint);
    const [start, ...more] = starts();
    expect(more).toEqual([]);
    expect(start?.args).toEqual(["--log-level", "error", "system", "service", "--time=20", `unix://${endpoint.path}`]);
    expect(Object.keys(start?.env ?? {})).not.toContain("SECRET");
    expect(Object.keys(start?.env ?? {})).not.toContain("http_proxy");
  });

  test("is one, however many open it at the same moment", async () => {
    const { options, starts } = prepare();
    const entry = join(directory, "open.ts");
    const outfile = join(directory, "open.mjs");
    const source = join(import.meta.dirname, "../../src/engine/service.ts");
    writeFileSync(
      entry,
      `import { openPrivateService } from ${JSON.stringify(source)};
console.log((await openPrivateService(JSON.parse(process.argv[2]))).path);`,
    );
    await build({
      entryPoints: [entry],
      bundle: true,
      platform: "node",
      format: "esm",
      target: "node20",
      outfile,
      logLevel: "error",
      external: ["smol-toml"],
    });
    const open = () => promisify(execFile)(process.execPath, [outfile, JSON.stringify(options)]);
    const said = await Promise.all(Array.from({ length: 4 }, open));
    expect(new Set(said.map(({ stdout }) => stdout.trim()))).toEqual(new Set([join(options.directory, "podman.sock")]));
    expect(starts()).toHaveLength(1);
    // Those who started it are gone, and it still answers.
    await ping(connectTo(join(options.directory, "podman.sock")));
  });

  test("is started anew after it has ended, or was killed and left its socket", async () => {
    const { options, starts } = prepare();
    const endpoint = await openPrivateService({ ...options, idleSeconds: 1 });
    for (let waited = 0; existsSync(`/proc/${starts()[0]?.pid}`) && waited < 10_000; waited += 50) await sleep(50);
    await openPrivateService(options);
    expect(starts()).toHaveLength(2);
    process.kill(starts()[1]?.pid ?? 0, "SIGKILL");
    await openPrivateService(options);
    expect(starts()).toHaveLength(3);
    await ping(connectTo(endpoint.path));
  });

  test("that cannot start is an error with what it said", async () => {
    const { options, starts } = prepare({ CONTAINERS_TEST_FAIL: "1" });
    const error = await failureOf(openPrivateService(options));
    expect(error.code).toBe("ENGINE_CONNECTION_FAILED");
    expect(error.message).toContain("Error: cannot set up namespace");
    expect(starts().length).toBeLessThanOrEqual(3);
    const missing = await failureOf(openPrivateService({ ...options, podman: "/nowhere/podman" }));
    expect(missing.message).toContain("ENOENT");
  });

  test("has its own runtime where one is named, beside the usual one", async () => {
    const { options, starts } = prepare();
    const usual = await openPrivateService(options);
    const other = await openPrivateService({ ...options, runtime: "runsc" });
    expect(other.path).not.toBe(usual.path);
    expect(starts()[1]?.args.slice(0, 2)).toEqual(["--runtime", "runsc"]);
  });

  test("respects the settings that the caller has", async () => {
    const { options, starts } = prepare({ CONTAINERS_CONF: "/mine", CONTAINERS_STORAGE_CONF: "/storage" });
    await openPrivateService(options);
    expect(starts()[0]?.env).toMatchObject({ CONTAINERS_CONF: "/mine", CONTAINERS_STORAGE_CONF: "/storage" });
    const home = prepare();
    mkdirSync(join(home.options.env["HOME"] ?? "", ".config/containers"), { recursive: true });
    writeFileSync(join(home.options.env["HOME"] ?? "", ".config/containers/containers.conf"), "");
    await openPrivateService(home.options);
    // Root's Podman reads no settings in a home, so these are none of its own.
    const isRoot = process.getuid?.() === 0;
    const ours = join(home.options.directory, "containers.conf");
    expect(home.starts()[0]?.env["CONTAINERS_CONF"]).toBe(isRoot ? ours : undefined);
    for (const [uid, configured] of [
      [1000, true],
      [0, existsSync("/etc/containers/containers.conf")],
    ] as const) {
      expect(readServiceFacts(home.options.env, uid).configured).toBe(configured);
    }
  });

  test("does not start in a directory of another user's, or under too long a name", async () => {
    const { options } = prepare();
    expect(await failureOf(openPrivateService({ ...options, uid: 12_345 }))).toMatchObject({
      code: "ENGINE_CONNECTION_FAILED",
    });
    const long = join(options.directory, "x".repeat(100));
    expect((await failureOf(openPrivateService({ ...options, directory: long }))).message).toContain("too long");
  });

  test("is not waited for when the caller says so", async () => {
    const { options } = prepare();
    const reason = new Error("enough");
    expect(await failureOf(openPrivateService({ ...options, signal: AbortSignal.abort(reason) }))).toBe(reason);
  });
});

describe("its settings", () => {
  const facts = {
    configured: false,
    unifiedCgroups: true,
    systemd: true,
    crun: true,
    runc: true,
    openFiles: null,
    processes: null,
  };
  const render = (more: Partial<typeof facts>) =>
    renderServiceSettings({ ...facts, ...more })
      ?.split("\n")
      .slice(1, -1);

  test("are next to none on an ordinary machine, and none where the caller has some", () => {
    expect(render({})).toEqual(["[containers]", "[engine]"]);
    expect(renderServiceSettings({ ...facts, configured: true })).toBeNull();
  });

  test("choose runc where crun would not do", () => {
    expect(render({ unifiedCgroups: false })).toContain('runtime = "runc"');
    expect(render({ crun: false })).toContain('runtime = "runc"');
    expect(render({ unifiedCgroups: false, runc: false })?.join()).not.toContain("runtime");
  });

  test("do without systemd, and stay within the hard limits", () => {
    expect(
      renderServiceSettings({ ...facts, systemd: false, openFiles: 20_000, processes: 500 })
        ?.split("\n")
        .slice(1, -1),
    ).toEqual([
      "[containers]",
      'default_ulimits = ["nofile=20000:20000","nproc=500:500"]',
      "[engine]",
      'cgroup_manager = "cgroupfs"',
      'events_logger = "file"',
    ]);
  });
});
