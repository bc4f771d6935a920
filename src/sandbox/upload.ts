import { PassThrough, type Readable } from "node:stream";
import { PodbotError, SessionError } from "../errors.ts";
import { execOnPipes } from "./exec.ts";
import type { Connector, Process } from "./sandbox.ts";

/** How much of tar's complaints is worth telling. */
const mostComplaint = 4096;

/** Unpacks an archive below a directory that exists inside, with the tar that is there. */
export async function upload(connector: Connector, archive: Readable, target: string): Promise<void> {
  const ending = new AbortController();
  let failure: SessionError | undefined;
  const fail = (cause: unknown) => {
    failure ??= new SessionError("UPLOAD_FAILED", `The archive could not be read: ${wordsOf(cause)}`, { cause });
    ending.abort();
  };
  const onClose = () => {
    if (!archive.readableEnded) fail(new Error("it was closed before its end."));
  };
  // From the first moment on: the archive may fail before there is anything to pipe it into.
  archive.on("error", fail).on("close", onClose);
  if (!archive.readable) fail(archive.errored ?? new Error("it has been read or closed already."));
  // Taken from the first moment on, too: Node throws away what a child process has printed if nobody reads it by its end.
  const supply = archive.pipe(new PassThrough());
  try {
    const tar = await startTar(connector, target, ending.signal);
    tar.stdout.destroy();
    const complaint = collect(tar.stderr);
    // Not a pipeline: that tar wants no more is not the archive's fault, and only tar knows whether it is one.
    supply.pipe(tar.stdin);
    const { code } = await tar.exited;
    if (failure === undefined && code !== 0) throw refused(target, code, await complaint);
  } catch (error) {
    failure ??= error as SessionError;
  } finally {
    archive.off("close", onClose);
    supply.destroy();
    if (archive.readableEnded) archive.off("error", fail);
    else archive.destroy();
  }
  if (failure !== undefined) throw failure;
}

async function startTar(connector: Connector, target: string, signal: AbortSignal): Promise<Process> {
  try {
    return await execOnPipes(connector, {
      // What GNU's and BusyBox's both understand.
      argv: ["tar", "-x", "-o", "-p", "-f", "-", "-C", target],
      env: { TAR_OPTIONS: null },
      // Half an archive is of no use: there is nothing to wait for.
      graceMs: 0,
      signal,
    });
  } catch (cause) {
    if (!(cause instanceof PodbotError) || cause.code === "BOX_LOST" || cause.code === "PROTOCOL") throw cause;
    if (cause.code === "COMMAND_NOT_FOUND") {
      throw new SessionError("UPLOAD_FAILED", "There is no tar in the sandbox to unpack an archive with.", {
        hint: "Install tar in it.",
        cause,
      });
    }
    throw new SessionError("UPLOAD_FAILED", `tar could not be started in the sandbox: ${cause.message}`, {
      ...(cause.hint === undefined ? {} : { hint: cause.hint }),
      cause,
    });
  }
}

/** Takes all, keeps the beginning: what comes from inside has no end that could be relied on. */
function collect(stream: Readable): Promise<string> {
  const kept: Buffer[] = [];
  let room = mostComplaint;
  stream.on("data", (bytes: Buffer) => {
    if (room === 0) return;
    const part = bytes.subarray(0, room);
    kept.push(part);
    room -= part.length;
  });
  return new Promise((resolve) => stream.once("close", () => resolve(Buffer.concat(kept).toString().trim())));
}

function refused(target: string, code: number, complaint: string): SessionError {
  const words = complaint === "" ? `tar ended with ${code}.` : complaint;
  return new SessionError("UPLOAD_FAILED", `Unpacking in ${JSON.stringify(target)} failed: ${words}`, {
    hint: "The directory must exist in the sandbox and be writable there, and the archive must be an uncompressed tar.",
    details: { code },
  });
}

function wordsOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
