import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { base } from "./execute.ts";
import type { Run } from "./run.ts";

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
    // One that was killed has left them; a number in it may be somebody else's by now, who would be taken for it.
    for (const path of [socket, pidfile]) rmSync(path, { force: true });
    const log = join(this.#run.directory, `${name}.log`);
    const output = openSync(log, "a");
    const [program = "", ...args] = words;
    const child = spawn(program, args, {
      cwd: "/",
      env: { ...base, ...this.#run.env, ...env },
      stdio: ["ignore", output, output],
      detached: true,
      ...(uid === undefined ? {} : { uid }),
      ...(gid === undefined ? {} : { gid }),
    });
    closeSync(output);
    await once(child, "spawn");
    this.#child = child;
    writeFileSync(this.#pidFile, `${child.pid}\n`);
    for (const end = Date.now() + 30_000; !(await isReady(socket)); await sleep(20)) {
      if (child.exitCode === null && child.signalCode === null && Date.now() < end) continue;
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

  pause(): void {
    this.#signal("SIGSTOP");
  }

  resume(): void {
    this.#signal("SIGCONT");
  }

  get #pidFile(): string {
    return join(this.#run.directory, "pids", this.#options.name);
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
    rmSync(this.#pidFile, { force: true });
  }

  /** Says whether there was anybody to get it. */
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
