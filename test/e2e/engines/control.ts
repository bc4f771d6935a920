import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { patience } from "../../faults/thorough.ts";
import type { EngineName, EngineRecord } from "./record.ts";

/** A request of a worker to the main process. */
export type ControlRequest =
  | { readonly action: "kill" | "start" | "pause" | "resume" | "remove"; readonly service: string }
  | { readonly action: "new"; readonly name: EngineName }
  | { readonly action: "first-build" }
  | { readonly action: "agent-image"; readonly engine: EngineRecord };

type Answer = { readonly output: string } | { readonly error: string };

/**
 * Listens for requests of the workers. A worker does not control a service itself: one that has become an ordinary user
 * may not signal it, and a service that it started would end with it.
 */
export async function listen(
  path: string,
  gid: number,
  handle: (request: ControlRequest) => Promise<string>,
): Promise<Server> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    // A killed worker reads no answer.
    socket.on("error", () => socket.destroy());
    const answer = (words: Answer) => socket.end(JSON.stringify(words));
    readAll(socket)
      .then((request) => handle(JSON.parse(request) as ControlRequest))
      .then(
        (output) => answer({ output }),
        (error: unknown) => answer({ error: String(error) }),
      )
      .catch(() => socket.destroy());
  });
  server.listen(path);
  await once(server, "listening");
  chownSync(path, 0, gid);
  chmodSync(path, 0o660);
  return server;
}

export async function ask(path: string, request: ControlRequest): Promise<string> {
  const socket = connect({ path, allowHalfOpen: true });
  socket.end(JSON.stringify(request));
  return read(await readAll(socket));
}

/** Like `ask`, but synchronous. */
export function askNow(path: string, request: ControlRequest): string {
  const script = `const socket = require("net").connect({ path: process.argv[1], allowHalfOpen: true });
    socket.end(process.argv[2]); socket.pipe(process.stdout);`;
  const words = ["-e", script, path, JSON.stringify(request)];
  const { stdout, stderr } = spawnSync(process.execPath, words, { encoding: "utf8", timeout: patience * 120_000 });
  if (stdout === "") throw new Error(stderr || `no answer to ${JSON.stringify(request)}`);
  return read(stdout);
}

/** Reads until the peer ends. `text()` would also close our side. */
async function readAll(socket: Socket): Promise<string> {
  let output = "";
  socket.setEncoding("utf8").on("data", (part: string) => {
    output += part;
  });
  await once(socket, "end");
  return output;
}

function read(words: string): string {
  const answer = JSON.parse(words) as Answer;
  if ("error" in answer) throw new Error(answer.error);
  return answer.output;
}
