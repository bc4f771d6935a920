import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { request } from "node:http";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../../eventually.ts";
import { patience } from "../../faults/thorough.ts";
import { pids, statOf } from "../../suite/read.ts";
import type { Run } from "../../suite/run.ts";
import { base } from "./execute.ts";

export interface ServiceOptions {
  readonly name: string;
  readonly words: readonly string[];
  readonly socket: string;
  /** Where it writes its own number, if it does. */
  readonly pidfile?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly uid?: number;
  readonly gid?: number;
  /** Whether it answers on its socket. */
  readonly isReady?: (socket: string) => Promise<boolean>;
}

/** A program in the background with a socket, in a process group of its own. */
export class Service {
  readonly #run: Run;
  readonly #options: ServiceOptions;
  #child: ChildProcess | null = null;

  constructor(run: Run, options: ServiceOptions) {
    this.#run = run;
    this.#options = options;
  }

  get socket(): string {
    return this.#options.socket;
  }

  get isRunning(): boolean {
    return this.#child !== null;
  }

  async start(): Promise<void> {
    const { name, words, socket, pidfile = socket, env, uid, gid, isReady = ping } = this.#options;
    if (this.#child !== null) throw new Error(`${name} is running already`);
    // A killed service leaves both files. The kernel may have reused the pid in the pidfile, and the new service would
    // take that process for a running one.
    for (const path of [socket, pidfile]) rmSync(path, { force: true });
    const log = join(this.#run.directory, `${name}.log`);
    const output = openSync(log, "a");
    const [program = "", ...args] = words;
    const child = spawn(program, args, {
      // conmon leaves a file there when a container runs out of memory.
      cwd: dirname(socket),
      env: { ...base, ...this.#run.env, ...env },
      stdio: ["ignore", output, output],
      detached: true,
      ...(uid === undefined ? {} : { uid }),
      ...(gid === undefined ? {} : { gid }),
    });
    closeSync(output);
    await once(child, "spawn");
    this.#child = child;
    for (const end = performance.now() + patience * 30_000; !(await isReady(socket)); await sleep(20)) {
      if (child.exitCode === null && child.signalCode === null && performance.now() < end) continue;
      await this.kill();
      throw new Error(`${words.join(" ")} does not answer on ${socket}:\n${readFileSync(log, "utf8").slice(-4000)}`);
    }
  }

  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** As a machine's init would: by SIGTERM, and SIGKILL if that takes too long. */
  async stop(): Promise<void> {
    this.#signal("SIGCONT");
    const timer = setTimeout(() => this.#signal("SIGKILL"), 10_000);
    await this.#end("SIGTERM");
    clearTimeout(timer);
  }

  /** Returns when every thread has stopped: until then the service may still answer. */
  async pause(): Promise<void> {
    this.#signal("SIGSTOP");
    const group = this.#child?.pid;
    if (group !== undefined)
      await until("the service stands still", () => statesOf(group).every((it) => /[TtZX]/.test(it)));
  }

  resume(): void {
    this.#signal("SIGCONT");
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (child === null) return;
    const exited = child.exitCode === null && child.signalCode === null ? once(child, "exit") : null;
    this.#signal(signal);
    await exited;
    // Rootless Podman has a second process, in the user namespace.
    for (let tries = 0; tries < 500 && this.#signal("SIGKILL"); tries++) await sleep(10);
    this.#child = null;
  }

  /** Returns whether the process group exists. */
  #signal(signal: NodeJS.Signals): boolean {
    if (this.#child?.pid === undefined) return false;
    try {
      return process.kill(-this.#child.pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
      return false;
    }
  }
}

/** The state of each thread of a process group. */
function statesOf(group: number): readonly string[] {
  return pids()
    .filter((pid) => Number(statOf(pid)[2]) === group)
    .flatMap((pid) => threadsOf(pid).map((thread) => statOf(Number(thread))[0] ?? "X"));
}

function threadsOf(pid: number): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

function ping(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const asking = request({ socketPath, path: "/_ping", timeout: 5_000 }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    asking.on("timeout", () => asking.destroy());
    asking.on("error", () => resolve(false));
    asking.end();
  });
}
