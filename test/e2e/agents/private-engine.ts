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
import { inject } from "vitest";
import { killAll, pids, wordsOf } from "../../suite/read.ts";
import { call } from "../engines/api.ts";
import type { TestEngine } from "../engines/engine.ts";
import { base } from "../engines/execute.ts";
import { endPause } from "../engines/podman.ts";
import type { Loopback } from "./loopback.ts";

/**
 * Another service of the same Podman, with the images of the first and of other stores, and data of its own. Where there
 * is a private network it is that one's: whatever its containers try, they reach nothing else.
 */
export async function serveIn(
  net: Pick<Loopback, "host" | "words"> | null,
  engine: TestEngine,
  stores: readonly string[] = [],
): Promise<TestEngine & AsyncDisposable> {
  // Short: Podman's own paths below it must not exceed 50 characters.
  const directory = mkdtempSync(join(inject("run").directory, "n"));
  const { uid, gid, home, user } = engine.caller;
  const env = { ...engine.env, ...configure(directory, engine, { host: net?.host, stores }) };
  spawnSync("chown", ["-R", `${uid}:${gid}`, directory]);
  const own = { ...base, ...env, HOME: home, USER: user };
  const socket = join(directory, "socket");
  const inside = (words: readonly string[]) => net?.words(words, engine.caller, "/") ?? words;
  const [file = "", ...words] = inside(["podman", "system", "service", "--time", "0", `unix://${socket}`]);
  const log = join(directory, "log");
  const output = openSync(log, "w");
  const service = spawn(file, words, { cwd: directory, env: own, stdio: ["ignore", output, output], detached: true });
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
      await endGroup(service.pid as number);
      cli("rm", "--all", "--force", "--time", "0");
      await endMonitors(directory);
      endPause(directory);
      // Where it has none of its own, a mount of Podman's is one of the machine's.
      if (net === null) spawnSync("umount", ["--lazy", join(directory, "graph/overlay")]);
      rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** Its settings, with other places and another name server. */
function configure(
  directory: string,
  engine: TestEngine,
  { host, stores }: { readonly host: string | undefined; readonly stores: readonly string[] },
): Readonly<Record<string, string>> {
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
  const places = [...new Set([join(given, "graph"), ...stores])];
  const images = `[storage.options]\nadditionalimagestores = ${JSON.stringify(places)}\n`;
  const names = host === undefined ? "" : `dns_servers = ["${host}"]\n`;
  return {
    CONTAINERS_CONF: adopt(settings, (text) => text.replace("]\n", `]\n${names}`)),
    CONTAINERS_STORAGE_CONF: adopt(storage, (text) => text + images),
    XDG_RUNTIME_DIR: join(directory, "xdg"),
  };
}

/** A container's monitor and its clean-up can outlive the container for a moment, and still use the directory. */
async function endMonitors(directory: string): Promise<void> {
  const monitors = () => pids().filter((pid) => wordsOf(pid).includes(`${directory}/`));
  for (let tries = 0; tries < 600 && monitors().length > 0; tries++) await sleep(50);
  killAll(monitors());
}

/** A rootless Podman has a second process, in the user namespace, which does not always end with the first. */
async function endGroup(pid: number): Promise<void> {
  try {
    for (let tries = 0; tries < 500; tries++) {
      process.kill(-pid, "SIGKILL");
      await sleep(10);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

async function answers(socket: string): Promise<boolean> {
  try {
    return (await call(socket, "GET", "/_ping")).status === 200;
  } catch {
    return false;
  }
}
