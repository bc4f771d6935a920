import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex, Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { findOnPath } from "../machine/programs.ts";
import { streamOfChild } from "./child-stream.ts";
import type { Endpoint } from "./endpoint.ts";
import { type Environment, idleMs, type Transport } from "./transport.ts";
import { connectionTrouble } from "./trouble.ts";

type SshEndpoint = Endpoint & { readonly kind: "ssh" };

export interface SshOptions {
  readonly env: Environment;
  /** A private key to log in with, beside those that ssh finds itself. */
  readonly identity: string | null;
}

/** A login may have to travel far; the engine itself is not waited for here. */
const loginMs = 30_000;
const lookMs = 20;
/** ssh makes its socket a moment before it listens at it. */
const listenMs = 2_000;
const longestWords = 2_000;

/**
 * An engine behind `ssh`, which brings its own keys, hosts and settings, and asks no questions. Where the socket is
 * named it is forwarded, once; otherwise each connection is a `docker system dial-stdio` on the far side.
 */
export function openSsh(endpoint: SshEndpoint, options: SshOptions): Transport {
  let words = "";
  const start = (args: readonly string[]): ChildProcess => {
    const child = startSsh(endpoint, options, args);
    words = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      words = (words + text).slice(-longestWords);
    });
    return child;
  };
  const tunnel = endpoint.path === null ? null : makeTunnel(endpoint.path, start);
  const dial = async (): Promise<Duplex> =>
    tunnel === null ? streamOfChild(start(["docker", "system", "dial-stdio"])) : connectSoon(await tunnel.open());
  const agent = new DialAgent(dial);

  return {
    target: () => ({ agent, host: "localhost" }),
    request,
    explain: async (error) => {
      // What ssh says and what its end looks like from here come on two ways.
      for (let looked = 0; words === "" && looked < 5; looked++) await sleep(lookMs);
      return connectionTrouble(
        endpoint,
        error,
        words
          .trim()
          .replace(/\s*\n\s*/g, "; ")
          .replace(/\.$/, ""),
      );
    },
    [Symbol.dispose]() {
      agent.destroy();
      tunnel?.[Symbol.dispose]();
    },
  };
}

class DialAgent extends Agent {
  readonly #dial: () => Promise<Duplex>;

  constructor(dial: () => Promise<Duplex>) {
    super({ keepAlive: true, timeout: idleMs });
    this.#dial = dial;
  }

  override createConnection(_options: unknown, done?: (error: Error | null, stream: Duplex) => void): undefined {
    this.#dial().then(
      (stream) => done?.(null, stream),
      (error) => done?.(error, undefined as unknown as Duplex),
    );
  }
}

/** Options come first: what follows `--` is a host and a command, whatever it begins with. */
function startSsh(
  { user, host, port }: SshEndpoint,
  { env, identity }: SshOptions,
  args: readonly string[],
): ChildProcess {
  const program = findOnPath("ssh", env["PATH"] ?? "");
  if (program === null) throw new Error("ssh is not on PATH");
  const options = args[0] === "-N" ? args : [];
  const command = args[0] === "-N" ? [] : args;
  return spawn(
    program,
    [
      ...["-T", "-o", "BatchMode=yes", "-o", "ExitOnForwardFailure=yes"],
      ...(user === null ? [] : ["-l", user]),
      ...(port === null ? [] : ["-p", String(port)]),
      ...(identity === null ? [] : ["-i", identity]),
      ...options,
      "--",
      host,
      ...command,
    ],
    {
      stdio: [command.length === 0 ? "ignore" : "pipe", command.length === 0 ? "ignore" : "pipe", "pipe"],
      env: { ...env },
    },
  );
}

async function connectSoon(path: string): Promise<Duplex> {
  for (let waited = 0; ; waited += lookMs) {
    const socket = connect(path);
    try {
      await once(socket, "connect");
      return socket;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ECONNREFUSED" || waited >= listenMs) throw error;
      await sleep(lookMs);
    }
  }
}

interface Tunnel extends Disposable {
  /** The path of a socket on this machine that leads to the one over there. */
  open(): Promise<string>;
}

function makeTunnel(far: string, start: (args: readonly string[]) => ChildProcess): Tunnel {
  let opened: Promise<string> | undefined;
  let close = () => {};

  const begin = async (): Promise<string> => {
    const directory = mkdtempSync(join(tmpdir(), "podbot-ssh-"));
    const near = join(directory, "engine.sock");
    let ended: Error | null = null;
    const child = start(["-N", "-L", `${near}:${far}`]);
    const leave = (why: Error) => {
      ended ??= why;
      opened = undefined;
      rmSync(directory, { recursive: true, force: true });
    };
    child.once("error", leave);
    child.once("close", (code, signal) => leave(new Error(`ssh ended with ${signal ?? code}`)));
    close = () => {
      child.kill();
      leave(new Error("the connection was closed"));
    };
    // An idle tunnel keeps no program from ending; the close that follows must then be said by the owner.
    child.unref();
    (child.stderr as (Readable & { unref?(): void }) | null)?.unref?.();
    for (let waited = 0; !existsSync(near); waited += lookMs) {
      if (ended !== null) throw ended;
      if (waited >= loginMs) {
        close();
        throw new Error(`ssh has not logged in for ${loginMs / 1_000} seconds`);
      }
      await sleep(lookMs);
    }
    return near;
  };

  return {
    open: () => {
      opened ??= begin().catch((error) => {
        opened = undefined;
        throw error;
      });
      return opened;
    },
    [Symbol.dispose]: () => close(),
  };
}
