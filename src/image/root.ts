import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { Readable } from "node:stream";
import { setTimeout as wait } from "node:timers/promises";
import type { EngineClient } from "../engine/client.ts";
import { importImage, removeImage, tagImage } from "../engine/image-store.ts";
import { EngineError } from "../errors.ts";
import { findOnPath } from "../machine/programs.ts";
import type { RootRecipe } from "./debian.ts";
import { remedyFor } from "./failure.ts";
import type { BuildHost } from "./host.ts";

const installing = "sudo apt-get install mmdebstrap uidmap debian-archive-keyring";

export interface RootOptions {
  readonly host: BuildHost;
  /** Variables that name proxies, for apt. */
  readonly proxies: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

/** Makes a root of Debian on this machine and an image of it, from one process into the other. */
export async function makeRoot(client: EngineClient, recipe: RootRecipe, options: RootOptions): Promise<void> {
  const { host, proxies, signal } = options;
  const program = findOnPath("mmdebstrap", host.env["PATH"] ?? "");
  if (program === null) throw noProgram();
  signal?.throwIfAborted();
  const child = spawn(program, [...recipe.args], {
    cwd: "/",
    env: { ...host.env, ...proxies },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exited = once(child, "exit");
  exited.catch(() => {});
  const lastLines = keepLines(child.stderr as Readable);
  const stop = () => void child.kill("SIGTERM");
  signal?.addEventListener("abort", stop, { once: true });
  try {
    const root = Readable.from(rootOf(child, exited, lastLines), { objectMode: false });
    await importWhole(client, recipe.tag, root, options);
  } catch (error) {
    throw causeOf(error);
  } finally {
    signal?.removeEventListener("abort", stop);
    stop();
    // It removes what it has unpacked.
    await exited.catch(() => {});
  }
}

/**
 * Podman also makes an image of an archive that broke off, after its client has left. So nothing gets the name that
 * others look for before all of it has arrived.
 */
async function importWhole(
  client: EngineClient,
  name: string,
  root: Readable,
  { labels, signal }: RootOptions,
): Promise<void> {
  const partial = `${name.replace(/:.*$/, "")}:partial-${randomBytes(4).toString("hex")}`;
  try {
    await importImage(client, partial, root, { labels, signal });
    await tagImage(client, partial, name, { signal });
    await removeImage(client, partial);
  } catch (error) {
    for (let tries = 0; tries < 15 && !(await isGone(client, partial)); tries++) await wait(200);
    throw error;
  }
}

/** True also where the engine itself is gone. */
async function isGone(client: EngineClient, name: string): Promise<boolean> {
  return await removeImage(client, name, { timeoutMs: 2_000 }).catch(() => true);
}

/** What it writes, and an error where it fails: an archive that only ends early must become no image. */
async function* rootOf(
  child: ChildProcess,
  exited: Promise<unknown[]>,
  lastLines: () => readonly string[],
): AsyncGenerator<Buffer, void> {
  yield* child.stdout as AsyncIterable<Buffer>;
  const [status] = await exited;
  if (status !== 0) throw failed(lastLines());
}

function keepLines(output: Readable): () => readonly string[] {
  let text = "";
  output.setEncoding("utf8").on("data", (piece: string) => {
    text = (text + piece).slice(-4_000);
  });
  return () => text.trimEnd().split("\n").slice(-10);
}

/** The upload breaks because of what was read, and the engine's client says it in its own words. */
function causeOf(error: unknown): unknown {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    if (at instanceof EngineError && at.code === "IMAGE_BASE_MISSING") return at;
  }
  return error;
}

function noProgram(): EngineError {
  return new EngineError("IMAGE_BASE_MISSING", "A root of Debian cannot be made here: there is no mmdebstrap.", {
    hint: `Install it with \`${installing}\`; or name an image of a Debian that the engine has with --base.`,
  });
}

function failed(lines: readonly string[]): EngineError {
  const said = lines.map((line) => `    ${line}`).join("\n");
  return new EngineError("IMAGE_BASE_MISSING", `A root of Debian could not be made; mmdebstrap says:\n${said}`, {
    hint:
      remedyFor(lines.join("\n")) ??
      `An ordinary user needs uidmap, and lines of their own in /etc/subuid and /etc/subgid: \`${installing}\`.`,
    details: { lines },
  });
}
