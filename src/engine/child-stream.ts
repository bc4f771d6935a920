import type { ChildProcess } from "node:child_process";
import type { Socket } from "node:net";
import { Duplex } from "node:stream";

/** A program's standard input and output as one stream that an HTTP agent takes for a socket. */
export function streamOfChild(child: ChildProcess): Duplex {
  const stdin = child.stdin as Socket;
  const stdout = child.stdout as Socket;
  const stream = new Duplex({
    allowHalfOpen: true,
    write: (chunk, encoding, done) => void stdin.write(chunk, encoding, done),
    final: (done) => void stdin.end(done),
    read: () => void stdout.resume(),
    destroy: (error, done) => {
      child.kill();
      done(error);
    },
  });
  stdin.on("error", () => {});
  stdout.on("data", (bytes) => {
    if (!stream.push(bytes)) stdout.pause();
  });
  child.once("error", (error) => stream.destroy(error));
  // Not at the end of its output: what it says of the reason must have been heard.
  child.once("close", () => stream.push(null));
  const all = [child, stdin, stdout, child.stderr as Socket];
  return Object.assign(stream, {
    setKeepAlive: () => stream,
    setNoDelay: () => stream,
    setTimeout: () => stream,
    ref: () => {
      for (const part of all) part.ref();
      return stream;
    },
    unref: () => {
      for (const part of all) part.unref();
      return stream;
    },
  });
}
