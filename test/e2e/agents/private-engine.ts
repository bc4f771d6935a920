import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  closeSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { call } from "../engines/api.ts";
import type { TestEngine } from "../engines/engine.ts";
import { base } from "../engines/execute.ts";
import type { Loopback } from "./loopback.ts";

/**
 * Another service of the same Podman, with the images of the first and data of its own, whose network is the private
 * one: whatever its containers try, they reach nothing else.
 */
export async function serveIn(net: Loopback, engine: TestEngine): Promise<TestEngine & AsyncDisposable> {
  // Short: Podman's own paths below it must not exceed 50 characters.
  const directory = mkdtempSync("/var/tmp/pbn-");
  const { uid, gid, home, user } = engine.caller;
  const env = { ...engine.env, ...configure(directory, engine, net.host) };
  spawnSync("chown", ["-R", `${uid}:${gid}`, directory]);
  const own = { ...base, ...env, HOME: home, USER: user };
  const socket = join(directory, "socket");
  const inside = (words: readonly string[]) => net.words(words, engine.caller, "/");
  const [file = "", ...words] = inside(["podman", "system", "service", "--time", "0", `unix://${socket}`]);
  const log = join(directory, "log");
  const output = openSync(log, "w");
  const service = spawn(file, words, { cwd: "/", env: own, stdio: ["ignore", output, output] });
  closeSync(output);
  const cli = (...command: string[]) => {
    const [program = "", ...rest] = inside(["podman", ...command]);
    const { status, stdout, stderr } = spawnSync(program, rest, { cwd: "/", env: own, encoding: "utf8" });
    return { status: status ?? -1, stdout, stderr };
  };
  for (let tries = 0; !(await answers(socket)); tries++) {
    if (tries > 500 || service.exitCode !== null)
      throw new Error(`the service does not answer: ${readFileSync(log, "utf8")}`);
    await sleep(40);
  }
  return {
    ...engine,
    socket,
    env,
    cli,
    async [Symbol.asyncDispose]() {
      service.kill();
      await once(service, "exit");
      cli("rm", "--all", "--force", "--time", "0");
      endNamespaces(directory);
      rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** Its settings, with other places and another name server. */
function configure(directory: string, engine: TestEngine, host: string): Readonly<Record<string, string>> {
  const { CONTAINERS_CONF: settings = "", CONTAINERS_STORAGE_CONF: storage = "" } = engine.env;
  const given = dirname(settings);
  chmodSync(directory, 0o755);
  for (const place of ["copy", "xdg"]) mkdirSync(join(directory, place), { mode: 0o700 });
  const adopt = (path: string, change: (text: string) => string) => {
    const adopted = path.replace(given, directory);
    copyFileSync(path, adopted);
    writeFileSync(adopted, change(readFileSync(path, "utf8").replaceAll(given, directory)));
    return adopted;
  };
  adopt(join(given, "runc"), (text) => text);
  const images = `[storage.options]\nadditionalimagestores = [${JSON.stringify(join(given, "graph"))}]\n`;
  return {
    CONTAINERS_CONF: adopt(settings, (text) => text.replace("]\n", `]\ndns_servers = ["${host}"]\n`)),
    CONTAINERS_STORAGE_CONF: adopt(storage, (text) => text + images),
    XDG_RUNTIME_DIR: join(directory, "xdg"),
  };
}

/** A rootless Podman leaves a process that keeps its namespaces, and with them the network. */
function endNamespaces(directory: string): void {
  try {
    process.kill(Number(readFileSync(join(directory, "tmp/pause.pid"), "utf8")), "SIGKILL");
  } catch {
    // There was none.
  }
}

async function answers(socket: string): Promise<boolean> {
  try {
    return (await call(socket, "GET", "/_ping")).status === 200;
  } catch {
    return false;
  }
}
