import { spawnSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { join } from "node:path";
import { inject } from "vitest";
import type { AgentImage, FirstBuild } from "./builder.ts";
import { ask, askNow } from "./control.ts";
import { base } from "./execute.ts";
import type { Caller, EngineName, EngineRecord } from "./record.ts";

export interface TestEngine {
  readonly name: EngineName;
  /** A Unix path that the caller may use. */
  readonly socket: string;
  /** Has sh, coreutils, tar, python3 and git. */
  readonly image: string;
  /** Who uses it: root, or the ordinary user. */
  readonly caller: Caller;
  /** What a process of that caller needs in its environment to find this engine, and no other of the machine. */
  readonly env: Readonly<Record<string, string>>;
  /** The runtime, where it is not runc; the service uses it without being told. */
  readonly runtime?: string;
  /** The engine's own command line, for assertions only. Podman's does not go through the socket. */
  cli(...words: string[]): { readonly status: number; readonly stdout: string; readonly stderr: string };
  /** Kills the service by SIGKILL; its containers keep running. */
  kill(): Promise<void>;
  /** Starts the service again on the same socket and data, and waits until it answers. */
  start(): Promise<void>;
  /** Stops the service by SIGSTOP: the kernel still accepts connections, but the service does not answer. */
  pause(): void;
  /** Continues it by SIGCONT. */
  resume(): void;
}

/** Environment that turns the network off where Podbot cannot open doors (gVisor); a start would fail otherwise. */
export function networkWords({ name }: Pick<TestEngine, "name">): Readonly<Record<string, string>> {
  return name === "podman-gvisor" ? { PODBOT_NETWORK_MODE: "none" } : {};
}

/**
 * An engine that all files of this run share: do not kill or pause it. `docker` and `docker-group` are one daemon.
 */
export function engine(name: EngineName): TestEngine {
  return open(recordOf(name));
}

/** An engine for one file alone, with its own data, which that file may kill and pause. It takes some seconds. */
export async function newEngine(name: EngineName): Promise<TestEngine & AsyncDisposable> {
  const control = anyControl();
  const record = JSON.parse(await ask(control, { action: "new", name })) as EngineRecord;
  return {
    ...open(record),
    async [Symbol.asyncDispose]() {
      await ask(control, { action: "remove", service: record.service });
    },
  };
}

/**
 * An image for agents, made by `podbot image build`. A build takes minutes, so the set-up starts it before the tests,
 * and later runs load the archive of an identical one.
 */
export async function agentImage({ name }: TestEngine): Promise<AgentImage> {
  return JSON.parse(await ask(anyControl(), { action: "agent-image", engine: recordOf(name) })) as AgentImage;
}

/**
 * The output of the run's first build, and the builder's engine. That engine is still building, so tests may only read
 * from it.
 */
export async function firstBuild(): Promise<Omit<FirstBuild, "engine"> & { readonly engine: TestEngine }> {
  const said = JSON.parse(await ask(anyControl(), { action: "first-build" })) as FirstBuild;
  return { ...said, engine: open(said.engine) };
}

/** Those of this run: all, unless PODBOT_E2E_ENGINES names some. */
export function engineNames(): readonly EngineName[] {
  return inject("engines").map((each) => each.name);
}

/** Turns this worker into the caller for good: the rest of the file runs as that user, with that user's home. */
export function becomeCaller({ caller, env }: Pick<TestEngine, "caller" | "env">): void {
  if (process.getuid?.() !== caller.uid) {
    process.setgroups?.([caller.gid]);
    process.setgid?.(caller.gid);
    process.setuid?.(caller.uid);
  }
  Object.assign(process.env, environmentOf(caller), env);
  const root = join(import.meta.dirname, "../../..");
  for (const part of ["src", "dist", "native/bin", "node_modules"]) {
    const path = join(root, part);
    try {
      accessSync(path, constants.R_OK | constants.X_OK);
    } catch (cause) {
      throw new Error(`${caller.user} cannot read ${path}: it and every directory above must be open to others`, {
        cause,
      });
    }
  }
}

function environmentOf({ user, home }: Caller): Readonly<Record<string, string>> {
  return { HOME: home, USER: user, LOGNAME: user };
}

function anyControl(): string {
  const [record] = inject("engines");
  if (record === undefined) throw new Error("this run has no engines");
  return record.control;
}

function recordOf(name: EngineName): EngineRecord {
  const record = inject("engines").find((each) => each.name === name);
  if (record === undefined) throw new Error(`${name} is not among the engines of this run (PODBOT_E2E_ENGINES)`);
  return record;
}

function open(record: EngineRecord): TestEngine {
  const { name, socket, image, caller, env, runtime, command, control, service } = record;
  return {
    name,
    socket,
    image,
    caller,
    env,
    ...(runtime === undefined ? {} : { runtime }),
    cli(...words) {
      const [program = "", ...prefix] = command;
      const { status, stdout, stderr, error } = spawnSync(program, [...prefix, ...words], {
        cwd: "/",
        env: { ...base, ...environmentOf(caller), ...env },
        encoding: "utf8",
        timeout: 240_000,
        killSignal: "SIGKILL",
        ...(process.getuid?.() === caller.uid ? {} : { uid: caller.uid, gid: caller.gid }),
      });
      if (error) throw error;
      return { status: status ?? -1, stdout, stderr };
    },
    async kill() {
      await ask(control, { action: "kill", service });
    },
    async start() {
      await ask(control, { action: "start", service });
    },
    pause: () => askNow(control, { action: "pause", service }),
    resume: () => askNow(control, { action: "resume", service }),
  };
}
