import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { SessionError } from "../errors.ts";
import { thisHost } from "../machine/host.ts";
import { isOwnPeer } from "../machine/peer.ts";
import { openSocketPath } from "../machine/socket-path.ts";
import type { Connector } from "../sandbox/sandbox.ts";
import type { SessionId } from "../wall/wall.ts";
import { encodeRequest, type Params, parseMessage } from "../wire/json-rpc.ts";
import { LineReader } from "../wire/ndjson.ts";

/** How long a keeper may take for an answer. It has little to do; one that is stopped or stuck never answers. */
const answerMs = 5_000;

/** Reaches the warden of a session that another process keeps. */
export function throughKeeper(id: SessionId, directory: string, note: Params): Connector {
  return {
    id,
    async connect(signal) {
      const socket = await request(directory, "connect", note, signal);
      return socket;
    },
  };
}

/** Asks a keeper to go by the configuration's rules of now. Fails with what is wrong with them. */
export async function askToReload(directory: string): Promise<void> {
  (await request(directory, "reload", {})).destroy();
}

/** Asks a keeper to end its session, and waits until it has. */
export async function askToStop(directory: string, graceMs: number): Promise<void> {
  const socket = await request(directory, "stop", { graceMs });
  socket.resume();
  // It hangs up as the last thing it does. Beyond the grace period it has only to clean up.
  if (socket.destroyed) return;
  const patience = AbortSignal.timeout(graceMs + 2 * answerMs);
  await once(socket, "close", { signal: patience }).catch(() => {
    socket.destroy();
    throw noAnswer("does not come to its end");
  });
}

/** One request; the connection, paused after the answer, is the caller's. */
async function request(directory: string, method: string, params: Params, signal?: AbortSignal): Promise<Socket> {
  signal?.throwIfAborted();
  const socket = await open(join(directory, "keeper.sock"));
  const onAbort = () => socket.destroy();
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    socket.write(encodeRequest(1, method, params));
    const { line, rest } = await firstLine(socket);
    const message = parseMessage(line);
    if (message.kind === "error") throw message.error;
    if (message.kind !== "result" || message.id !== 1) throw noAnswer("answered something that was not asked");
    socket.pause();
    if (rest.length > 0) socket.unshift(rest);
    return socket;
  } catch (error) {
    socket.destroy();
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener("abort", onAbort);
  }
}

async function open(path: string): Promise<Socket> {
  try {
    using place = openSocketPath(path);
    const socket = connect(place.address);
    await once(socket, "connect");
    // Whoever uses it hears of its end; a broken connection is nothing else.
    socket.on("error", () => {});
    // What is said to a keeper may be secret, and what it answers is believed.
    if (await isOwnPeer(socket, thisHost().uid)) return socket;
    socket.destroy();
    throw new Error("whoever listens there is not a keeper of yours");
  } catch (cause) {
    throw new SessionError("SESSION_UNREACHABLE", `The session's keeper does not answer at ${path}.`, {
      hint: "`podbot ps` shows what is left of it; `podbot stop` removes it.",
      cause,
    });
  }
}

function firstLine(socket: Socket): Promise<{ readonly line: Buffer; readonly rest: Buffer }> {
  const lines = new LineReader(64 * 1024);
  return new Promise((resolve, reject) => {
    // An answer that came while this process was held up is read before it is called late.
    const timer = setTimeout(() => setImmediate(finish, () => reject(noAnswer("does not answer"))), answerMs);
    const onClose = () => finish(() => reject(noAnswer("hung up")));
    const onData = (bytes: Buffer) => {
      try {
        lines.feed(bytes);
        const line = lines.next();
        if (line !== null) finish(() => resolve({ line, rest: lines.rest() }));
      } catch (error) {
        finish(() => reject(error));
      }
    };
    const finish = (act: () => void) => {
      clearTimeout(timer);
      socket.off("data", onData).off("close", onClose);
      act();
    };
    socket.on("data", onData).once("close", onClose);
    // Node has stopped reading what was lent to another process.
    socket.resume();
  });
}

function noAnswer(what: string): SessionError {
  return new SessionError("SESSION_UNREACHABLE", `The session's keeper ${what}.`, {
    hint: "It may be suspended (Ctrl-Z) or about to end: `podbot ps` shows it.",
  });
}
