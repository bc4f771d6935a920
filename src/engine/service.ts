import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  closeSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { EngineError } from "../errors.ts";
import { withLock } from "../machine/lock.ts";
import { ownMark } from "../machine/process.ts";
import { lookAt, markOf, type ProcessMark } from "../machine/process-mark.ts";
import { connectEngine } from "./client.ts";
import type { Endpoint } from "./endpoint.ts";
import { ping } from "./ping.ts";
import { readServiceFacts } from "./service-facts.ts";
import { renderServiceSettings } from "./service-settings.ts";
import type { Environment } from "./transport.ts";

export interface ServiceOptions {
  /** The program, at its resolved path. */
  readonly podman: string;
  /** Where its socket, settings and log lie; made, and kept closed to others. Its name counts in the socket's address. */
  readonly directory: string;
  readonly env: Environment;
  readonly uid: number;
  /** After how long without a connection the service ends. Default: 60 s. */
  readonly idleSeconds?: number;
  /** The OCI runtime of all its containers, by name or path. Default: what Podman's settings say. */
  readonly runtime?: string;
  readonly signal?: AbortSignal | undefined;
}

const startMs = 20_000;
const lookMs = 20;
const mostStarts = 3;
const longestLog = 256 * 1_024;

/**
 * A Podman service of this user's own, for machines where no engine listens. It outlives the caller, ends when nobody
 * has used it for a while, and is found again by the next one as long as it lives.
 */
export async function openPrivateService(options: ServiceOptions): Promise<Endpoint & { readonly kind: "unix" }> {
  const places = claimPlaces(options);
  const endpoint = { kind: "unix", path: places.socket } as const;
  const { signal } = options;
  let starts = 0;
  for (const until = performance.now() + startMs; performance.now() < until; await sleep(lookMs)) {
    signal?.throwIfAborted();
    if (await answers(endpoint, signal)) {
      boundLog(places.log);
      return endpoint;
    }
    // One that is just ending, or beginning under somebody else's hand, is waited for.
    if (isServed(places)) continue;
    if (starts >= mostStarts) break;
    withLock(places.lock, ownMark(), () => {
      if (!isServed(places)) start(options, places);
    });
    starts += 1;
  }
  throw silent(options, places);
}

interface ServicePlaces {
  readonly socket: string;
  readonly settings: string;
  readonly log: string;
  readonly mark: string;
  readonly lock: string;
}

function claimPlaces({ directory, uid, runtime }: ServiceOptions): ServicePlaces {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const stats = lstatSync(directory);
  if (!stats.isDirectory() || stats.uid !== uid) {
    throw new EngineError("ENGINE_CONNECTION_FAILED", `${directory} is not a directory of this user's own.`, {
      hint: "Find out who made it, then remove it.",
      details: { path: directory },
    });
  }
  chmodSync(directory, 0o700);
  // Whoever wants another runtime must not find the service that has this one.
  const name =
    runtime === undefined ? "podman" : `podman-${createHash("sha256").update(runtime).digest("hex").slice(0, 8)}`;
  const socket = join(directory, `${name}.sock`);
  if (Buffer.byteLength(socket) > 107) {
    throw new EngineError("ENGINE_CONNECTION_FAILED", `${socket} is too long for the address of a socket.`, {
      hint: "Set XDG_RUNTIME_DIR to a directory with a shorter path.",
      details: { path: socket },
    });
  }
  return {
    socket,
    settings: join(directory, "containers.conf"),
    log: join(directory, `${name}.log`),
    mark: join(directory, `${name}.pid`),
    lock: join(directory, "lock"),
  };
}

async function answers(
  endpoint: Endpoint & { readonly kind: "unix" },
  signal: AbortSignal | undefined,
): Promise<boolean> {
  try {
    using client = connectEngine(endpoint);
    await ping(client, { signal, timeoutMs: 5_000 });
    chmodSync(endpoint.path, 0o600);
    return true;
  } catch (error) {
    if (error instanceof EngineError || (error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}

function isServed({ mark }: ServicePlaces): boolean {
  try {
    return lookAt(JSON.parse(readFileSync(mark, "utf8")) as ProcessMark) === "alive";
  } catch {
    return false;
  }
}

function start(options: ServiceOptions, places: ServicePlaces): void {
  const settings = renderServiceSettings(readServiceFacts(options.env, options.uid));
  if (settings !== null) writeFileSync(places.settings, settings, { mode: 0o600 });
  rmSync(places.socket, { force: true });
  const log = openLog(places.log);
  try {
    const child = spawn(
      options.podman,
      [
        ...(options.runtime === undefined ? [] : ["--runtime", options.runtime]),
        ...[
          "--log-level",
          "error",
          "system",
          "service",
          `--time=${options.idleSeconds ?? 60}`,
          `unix://${places.socket}`,
        ],
      ],
      {
        detached: true,
        // Podman's monitor leaves a file in its working directory when a container runs out of memory.
        cwd: options.directory,
        stdio: ["ignore", log, log],
        env: serviceEnvironment(options.env, settings === null ? null : places.settings),
      },
    );
    // What cannot be started is noticed by its silence, and explained by the log.
    child.once("error", (error) => writeFileSync(places.log, `${error.message}\n`));
    child.unref();
    const mark = child.pid === undefined ? null : markOf(child.pid);
    if (mark !== null) writeFileSync(places.mark, JSON.stringify(mark), { mode: 0o600 });
  } finally {
    closeSync(log);
  }
}

function openLog(path: string): number {
  const log = openSync(path, "a", 0o600);
  truncateSync(path);
  return log;
}

/** The service appends, so that what was cut off stays cut off. */
function boundLog(path: string): void {
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > longestLog) truncateSync(path);
}

const passed =
  /^(PATH|HOME|USER|LOGNAME|LANG|LC_.*|TZ|TMPDIR|XDG_.*|CONTAINERS_.*|STORAGE_.*|REGISTRY_AUTH_FILE|DBUS_SESSION_BUS_ADDRESS)$/;

/** Only what Podman needs: it lives longer than the caller, and hands proxies on to containers. */
function serviceEnvironment(env: Environment, settings: string | null): Record<string, string> {
  const kept = Object.entries(env).filter(
    (entry): entry is [string, string] => passed.test(entry[0]) && entry[1] !== undefined,
  );
  return { ...Object.fromEntries(kept), ...(settings === null ? {} : { CONTAINERS_CONF: settings }) };
}

function silent({ podman }: ServiceOptions, { socket, log }: ServicePlaces): EngineError {
  const words = lastLines(log);
  return new EngineError(
    "ENGINE_CONNECTION_FAILED",
    `A Podman service of its own does not answer at ${socket}${words === "" ? "" : `: ${words}`}.`,
    {
      hint: `Try by hand: \`${podman} info\` says what is missing.`,
      details: { path: socket, log, words },
    },
  );
}

function lastLines(log: string): string {
  try {
    const text = readFileSync(log, "utf8").trim();
    return text.slice(-1_000).split("\n").slice(-5).join("; ").replace(/\.$/, "");
  } catch {
    return "";
  }
}
