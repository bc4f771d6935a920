import { Duplex } from "node:stream";
import { EngineError } from "../errors.ts";
import type { EngineClient } from "./client.ts";
import { type CallOptions, containerPath } from "./containers.ts";
import { makeDemultiplexer } from "./multiplex.ts";
import { recordOf, stringOf } from "./shape.ts";

export interface ExecOptions extends CallOptions {
  readonly argv: readonly string[];
  /** Default: the container's own. */
  readonly user?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly workingDir?: string;
  /** Hears what the program writes to its standard error. Default: it is dropped. */
  readonly onStderr?: (bytes: Buffer) => void;
}

/**
 * A program inside as a stream: what is written goes to its standard input, what is read is its standard output.
 * Ending the stream ends its input only. To destroy it does not end the program: no engine can do that.
 */
export async function execAttach(client: EngineClient, id: string, options: ExecOptions): Promise<Duplex> {
  const { argv, user, env = {}, workingDir, onStderr = () => {}, ...rest } = options;
  const answer = await client.request({
    ...rest,
    method: "POST",
    path: containerPath(id, "/exec"),
    refusedAs: "EXEC_FAILED",
    body: {
      AttachStdin: true,
      AttachStdout: true,
      AttachStderr: true,
      Tty: false,
      Cmd: argv,
      Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
      ...(user === undefined ? {} : { User: user }),
      ...(workingDir === undefined ? {} : { WorkingDir: workingDir }),
    },
  });
  const exec = stringOf(recordOf(await answer.json())["Id"]);
  if (!/^[A-Za-z0-9]+$/.test(exec)) throw new EngineError("PROTOCOL", "The engine has not named the exec it created.");
  const path = `/exec/${exec}/start`;
  const body = { Detach: false, Tty: false };
  const socket = await client.hijack({ ...rest, method: "POST", path, refusedAs: "EXEC_FAILED", body });
  return demultiplexed(socket, onStderr);
}

function demultiplexed(socket: Duplex, onStderr: (bytes: Buffer) => void): Duplex {
  const take = makeDemultiplexer();
  const stream = new Duplex({
    allowHalfOpen: true,
    write: (chunk: Buffer, encoding, done) => void socket.write(chunk, encoding, done),
    final: (done) => void socket.end(done),
    read: () => void socket.resume(),
    destroy: (error, done) => {
      socket.destroy();
      done(error);
    },
  });
  socket.on("data", (bytes: Buffer) => {
    try {
      for (const piece of take(bytes)) {
        if (piece.stream === "stderr") onStderr(piece.bytes);
        else if (!stream.push(piece.bytes)) socket.pause();
      }
    } catch (error) {
      stream.destroy(error as Error);
    }
  });
  socket.once("end", () => stream.push(null));
  socket.once("error", (error) => stream.destroy(error));
  // An end that was never said leaves nobody waiting.
  socket.once("close", () => {
    if (!stream.readableEnded && !stream.destroyed) stream.push(null);
  });
  socket.pause();
  return stream;
}
