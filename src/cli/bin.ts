import { readlinkSync, statSync, writeSync } from "node:fs";
import type { Signal } from "../wall/wall.ts";
import type { Output } from "./io.ts";
import { main } from "./main.ts";

const signals: readonly Signal[] = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"];

/** Writes at once and whole. Node's own streams would cost more to set up than the rest of a short run. */
function output(descriptor: 1 | 2): Output {
  let isLeft = false;
  return {
    write: (text) => {
      isLeft = !writeAll(descriptor, Buffer.from(text));
    },
    get isLeft() {
      return isLeft;
    },
    get isTerminal() {
      return process.getBuiltinModule("node:tty").isatty(descriptor);
    },
  };
}

/** False where nobody can read it any more. */
function writeAll(descriptor: number, bytes: Buffer): boolean {
  for (let written = 0; written < bytes.length; ) {
    try {
      written += writeSync(descriptor, bytes, written);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // A reader that has left (podbot … | head) is no reason to fail; a slow one on a non-blocking pipe is waited for.
      if (code !== "EAGAIN") return false;
    }
  }
  return true;
}

// SIGUSR1 would open Node's debugger to whoever can connect to it, and processes of one group can send it.
process.on("SIGUSR1", () => {});

/** A directory that is gone has no path any more; the kernel's name for it leads nowhere, and is refused as such. */
function standing(): string {
  try {
    return process.cwd();
  } catch {
    return readlinkSync("/proc/self/cwd");
  }
}

const here = statSync(".");
const parent = process.ppid;
/** What is still to be done when all else is. */
const after: (() => void)[] = [];

void main(process.argv.slice(2), {
  stdout: output(1),
  stderr: output(2),
  descriptors: [0, 1, 2],
  streams: async () => {
    const { writeTo } = await import("../machine/descriptor-stream.ts");
    return { input: process.stdin, output: writeTo(1), errors: writeTo(2) };
  },
  channel: async () => {
    const { channelTo, hasReader } = await import("../machine/descriptor-stream.ts");
    // What nobody has read by then is not waited for.
    after.push(() => process.exit());
    const isAbandoned = () => process.ppid !== parent || !hasReader(1);
    return { input: process.stdin, output: channelTo(1), errors: channelTo(2), isAbandoned };
  },
  terminal: async () => (await import("../machine/terminal.ts")).ownTerminal(),
  env: { ...process.env },
  cwd: standing(),
  cwdIdentity: `${here.dev}:${here.ino}`,
  onSignal: (listener) => {
    const handlers = signals.map((signal) => [signal, () => listener(signal)] as const);
    for (const [signal, handler] of handlers) process.on(signal, handler);
    return () => {
      for (const [signal, handler] of handlers) process.off(signal, handler);
    };
  },
  now: Date.now,
}).then((status) => {
  process.exitCode = status;
  // All is done by then: Node need not take its heap apart, which takes longer the more there is in it. Not before, or
  // Node would end without a word of what went wrong.
  process.on("exit", () => process.exit());
  for (const act of after) act();
});
