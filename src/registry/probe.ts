import { lstatSync } from "node:fs";
import { connect } from "node:net";
import { thisHost } from "../machine/host.ts";
import { isOwnPeer } from "../machine/peer.ts";
import { openSocketPath, type SocketPath } from "../machine/socket-path.ts";
import { encodeRequest, parseMessage } from "../wire/json-rpc.ts";
import { LineReader } from "../wire/ndjson.ts";
import type { SessionId } from "./record.ts";

/**
 * What a keeper's socket says. Refused: nobody of this session listens. Absent: there is no socket. Silent: whoever
 * listens has not said in time who they are, or nobody can tell; this proves nothing.
 */
export type KeeperAnswer = "answers" | "refused" | "absent" | "silent";

/** Whom to expect: this session's keeper, with its record in this state directory. */
export interface Expected {
  readonly id: SessionId;
  readonly state: string;
}

/** Asks who listens on a socket. Never throws, and never takes longer than `waitMs`. */
export async function probeKeeper(socket: string, expected: Expected, waitMs: number): Promise<KeeperAnswer> {
  let path: SocketPath;
  try {
    // Most sessions of a long list have ended: these cost no descriptor.
    lstatSync(socket);
    path = openSocketPath(socket);
  } catch (error) {
    return answerOf(error);
  }
  try {
    return await ask(path.address, expected, waitMs);
  } finally {
    path[Symbol.dispose]();
  }
}

function ask(address: string, expected: Expected, waitMs: number): Promise<KeeperAnswer> {
  return new Promise((resolve) => {
    const { uid } = thisHost();
    const connection = connect(address);
    const lines = new LineReader();
    const finish = (answer: KeeperAnswer) => {
      clearTimeout(timer);
      connection.destroy();
      resolve(answer);
    };
    // An answer that came while this process was held up is read before it is called late.
    const timer = setTimeout(() => setImmediate(finish, "silent"), waitMs);
    connection.on("error", (error) => finish(answerOf(error)));
    // Accepted and let go: a keeper that is just ending, or nobody that we know.
    connection.on("close", () => finish("silent"));
    connection.on("data", (bytes) => {
      const answer = readAnswer(lines, bytes, expected);
      if (answer !== null) finish(answer);
    });
    connection.once("connect", async () => {
      // Who listens in a keeper's place from inside a box is nobody.
      if (!(await isOwnPeer(connection, uid).catch(() => false))) return finish("refused");
      connection.write(encodeRequest(1, "describe"));
      // Node has stopped reading what was lent to another process.
      connection.resume();
    });
  });
}

/** Null where more must come. */
function readAnswer(lines: LineReader, bytes: Buffer, expected: Expected): KeeperAnswer | null {
  try {
    lines.feed(bytes);
    for (let line = lines.next(); line !== null; line = lines.next()) {
      const message = parseMessage(line);
      if (message.kind === "error") return "silent";
      if (message.kind === "result") return judge(message.result, expected);
    }
    return null;
  } catch {
    return "silent";
  }
}

/** A keeper of the same user that keeps its records elsewhere lives, and is none of ours. */
function judge(result: unknown, expected: Expected): KeeperAnswer {
  const { id, state } = typeof result === "object" && result !== null ? (result as Partial<Expected>) : {};
  if (id !== expected.id) return "refused";
  return state === expected.state ? "answers" : "silent";
}

/** Only what the system says for certain counts: with a full backlog, say, somebody listens all the same. */
function answerOf(error: unknown): KeeperAnswer {
  const { code } = error as NodeJS.ErrnoException;
  if (code === "ECONNREFUSED") return "refused";
  return code === "ENOENT" || code === "ENOTDIR" ? "absent" : "silent";
}
