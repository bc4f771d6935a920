import { statSync, writeSync } from "node:fs";
import type { Signal } from "../wall/wall.ts";
import type { Output } from "./io.ts";
import { main } from "./main.ts";

const signals: readonly Signal[] = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"];

/** Writes at once and whole. Node's own streams would cost more to set up than the rest of a short run. */
function output(descriptor: 1 | 2): Output {
  return {
    write: (text) => writeAll(descriptor, Buffer.from(text)),
    get isTerminal() {
      return process.getBuiltinModule("node:tty").isatty(descriptor);
    },
  };
}

function writeAll(descriptor: number, bytes: Buffer): void {
  for (let written = 0; written < bytes.length; ) {
    try {
      written += writeSync(descriptor, bytes, written);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // A reader that has left (podbot … | head) is no reason to fail; a slow one on a non-blocking pipe is waited for.
      if (code !== "EAGAIN") return;
    }
  }
}

// SIGUSR1 would open Node's debugger to whoever can connect to it, and processes of one group can send it.
process.on("SIGUSR1", () => {});

const here = statSync(".");

void main(process.argv.slice(2), {
  stdout: output(1),
  stderr: output(2),
  descriptors: [0, 1, 2],
  env: { ...process.env },
  cwd: process.cwd(),
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
});
