import type { Signal } from "../wall/wall.ts";
import type { Output } from "./io.ts";
import { main } from "./main.ts";

const signals: readonly Signal[] = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"];

function output(stream: NodeJS.WriteStream): Output {
  // A reader that has left (podbot … | head) is no reason to fail.
  stream.on("error", () => {});
  return { write: (text) => void stream.write(text), isTerminal: stream.isTTY === true };
}

process.exitCode = await main(process.argv.slice(2), {
  stdout: output(process.stdout),
  stderr: output(process.stderr),
  descriptors: [0, 1, 2],
  env: process.env,
  cwd: process.cwd(),
  onSignal: (listener) => {
    const handlers = signals.map((signal) => [signal, () => listener(signal)] as const);
    for (const [signal, handler] of handlers) process.on(signal, handler);
    return () => {
      for (const [signal, handler] of handlers) process.off(signal, handler);
    };
  },
  now: Date.now,
});
