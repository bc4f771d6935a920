import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import type { EngineName, EngineRecord } from "./record.ts";

/** What a worker wants of the main process. */
export type Wish =
  | { readonly action: "kill" | "start" | "pause" | "resume" | "remove"; readonly service: string }
  | { readonly action: "new"; readonly name: EngineName }
  | { readonly action: "first-build" }
  | { readonly action: "agent-image"; readonly engine: EngineRecord };

type Answer = { readonly said: string } | { readonly error: string };

/**
 * Listens for wishes of the workers. A worker does not control a service itself: one that has become an ordinary user
 * may not signal it, and a service that it started would end with it.
 */
export async function listen(path: string, gid: number, fulfil: (wish: Wish) => Promise<string>): Promise<Server> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    // A worker that was killed does not hear the answer.
    socket.on("error", () => socket.destroy());
    const answer = (words: Answer) => socket.end(JSON.stringify(words));
    hear(socket)
      .then((wish) => fulfil(JSON.parse(wish) as Wish))
      .then(
        (said) => answer({ said }),
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

export async function ask(path: string, wish: Wish): Promise<string> {
  const socket = connect({ path, allowHalfOpen: true });
  socket.end(JSON.stringify(wish));
  return read(await hear(socket));
}

/** Like `ask`, but synchronous. */
export function askNow(path: string, wish: Wish): string {
  const script = `const socket = require("net").connect({ path: process.argv[1], allowHalfOpen: true });
    socket.end(process.argv[2]); socket.pipe(process.stdout);`;
  const words = ["-e", script, path, JSON.stringify(wish)];
  const { stdout, stderr } = spawnSync(process.execPath, words, { encoding: "utf8", timeout: 60_000 });
  if (stdout === "") throw new Error(stderr || `no answer to ${JSON.stringify(wish)}`);
  return read(stdout);
}

/** Reads until the peer ends. `text()` would also close our side. */
async function hear(socket: Socket): Promise<string> {
  let said = "";
  socket.setEncoding("utf8").on("data", (part: string) => {
    said += part;
  });
  await once(socket, "end");
  return said;
}

function read(words: string): string {
  const answer = JSON.parse(words) as Answer;
  if ("error" in answer) throw new Error(answer.error);
  return answer.said;
}
