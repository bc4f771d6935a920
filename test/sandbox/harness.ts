import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex, Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { openSandbox } from "../../src/sandbox/open.ts";
import type { Connector, Sandbox } from "../../src/sandbox/sandbox.ts";

const native = fileURLToPath(new URL("../../native", import.meta.url));

export interface RealSandbox extends AsyncDisposable {
  readonly sandbox: Sandbox;
  readonly connector: Connector;
  /** A directory that is the same inside and outside. */
  readonly directory: string;
  readonly warden: ChildProcess;
}

/** A warden as an ordinary process, or behind a program that starts it (`["bwrap", …]`), and the way to it. */
export async function startWarden(before: readonly string[] = []): Promise<RealSandbox> {
  execFileSync("flock", [join(native, "Makefile"), "make", "-s", "-C", native]);
  const directory = mkdtempSync(join(tmpdir(), "podbot-sandbox-"));
  const path = join(directory, "warden.sock");
  const token = randomBytes(32);
  const lobby = new Lobby(Buffer.concat([Buffer.from("podbot\x001"), token]));
  const server = createServer((socket) => lobby.receive(socket));
  server.listen(path);
  await once(server, "listening");
  const [program, ...words] = [...before, join(native, "bin", process.arch, "podbot-warden"), path];
  const warden = spawn(program as string, words, { stdio: ["pipe", "ignore", "inherit"] });
  warden.stdin?.end(token);
  const connector: Connector = { id: "abcdefghij", connect: (signal) => lobby.take(signal) };
  return {
    sandbox: openSandbox(connector),
    connector,
    directory,
    warden,
    async [Symbol.asyncDispose]() {
      server.close();
      lobby.close();
      const gone = warden.exitCode === null && warden.signalCode === null ? once(warden, "exit") : undefined;
      warden.kill("SIGKILL");
      await gone;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Where the warden's connections wait until somebody has an order. */
class Lobby {
  readonly #hello: Buffer;
  readonly #parked: Socket[] = [];
  readonly #waiting: ((socket: Socket) => void)[] = [];

  constructor(hello: Buffer) {
    this.#hello = hello;
  }

  receive(socket: Socket): void {
    let said = Buffer.alloc(0);
    const onData = (chunk: Buffer) => {
      said = Buffer.concat([said, chunk]);
      if (said.length < this.#hello.length) return;
      socket.off("data", onData).pause();
      if (!said.equals(this.#hello)) throw new Error("This is not the warden.");
      const next = this.#waiting.shift();
      if (next === undefined) this.#parked.push(socket);
      else next(socket);
    };
    socket.on("data", onData);
    socket.on("error", () => {});
    socket.on("close", () => {
      const at = this.#parked.indexOf(socket);
      if (at >= 0) this.#parked.splice(at, 1);
    });
  }

  async take(signal?: AbortSignal): Promise<Duplex> {
    const socket = this.#parked.shift();
    if (socket !== undefined) return socket;
    return new Promise((resolve, reject) => {
      const settle = (next: Socket) => {
        signal?.removeEventListener("abort", onAbort);
        resolve(next);
      };
      const onAbort = () => {
        this.#waiting.splice(this.#waiting.indexOf(settle), 1);
        reject(signal?.reason);
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#waiting.push(settle);
    });
  }

  close(): void {
    for (const socket of this.#parked) socket.destroy();
  }
}

/** All that a stream says, as text. */
export async function textOf(stream: Readable): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of stream) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
}

/** Hears a stream from now on, and can wait until it has said something. */
export function hear(stream: Readable): { readonly said: () => string; until(text: string): Promise<void> } {
  let said = "";
  stream.on("data", (part: Buffer) => {
    said += part.toString();
  });
  return {
    said: () => said,
    async until(text) {
      while (!said.includes(text)) await once(stream, "data");
    },
  };
}
