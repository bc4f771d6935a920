import type { Readable } from "node:stream";
import { EngineError } from "../errors.ts";
import type { EngineClient } from "./client.ts";
import { type CallOptions, containerPath } from "./containers.ts";

/**
 * Unpacks a tar at a directory that exists in the container. The tar is read as fast as the engine takes it. Errors call
 * the container by `name`. Default: its id.
 */
export async function putArchive(
  client: EngineClient,
  id: string,
  path: string,
  tar: Readable,
  { name = id, ...options }: CallOptions & { readonly name?: string } = {},
): Promise<void> {
  try {
    const answer = await client.request({
      timeoutMs: null,
      ...options,
      method: "PUT",
      path: containerPath(id, "/archive"),
      query: { path, noOverwriteDirNonDir: true },
      upload: tar,
      refusedAs: "UPLOAD_FAILED",
    });
    await answer.discard();
  } catch (error) {
    tar.destroy();
    if (options.signal?.aborted) throw error;
    throw uploadTrouble(error, name, path);
  }
}

/** A tar of what lies at a path in the container, or null where nothing does. Whoever takes it reads or destroys it. */
export async function getArchive(
  client: EngineClient,
  id: string,
  path: string,
  options: CallOptions = {},
): Promise<Readable | null> {
  const answer = await client.request({
    timeoutMs: null,
    ...options,
    method: "GET",
    path: containerPath(id, "/archive"),
    query: { path },
    accept: [404],
  });
  if (answer.status !== 404) return answer.body;
  await answer.discard();
  return null;
}

/** Whether a link lies at a path in the container; null where nothing does. Links in the directories above are followed. */
export async function isLinkAt(
  client: EngineClient,
  id: string,
  path: string,
  options: CallOptions = {},
): Promise<boolean | null> {
  const answer = await client.request({
    ...options,
    method: "HEAD",
    path: containerPath(id, "/archive"),
    query: { path },
    accept: [404],
  });
  await answer.discard();
  if (answer.status === 404) return null;
  const stat = Buffer.from(answer.header("x-docker-container-path-stat") ?? "", "base64").toString();
  return isLink(stat, path);
}

/** Engines give the mode in Go's own bits. One that says none has not looked. */
function isLink(stat: string, path: string): boolean {
  try {
    const { mode } = JSON.parse(stat) as { readonly mode?: unknown };
    if (typeof mode === "number") return (mode & goSymlink) !== 0;
  } catch {}
  throw new EngineError("PROTOCOL", `The engine did not say what lies at ${path} in the container.`, {
    details: { path },
  });
}

const goSymlink = 2 ** 27;

function uploadTrouble(error: unknown, container: string, path: string): EngineError {
  const why = error instanceof Error ? error.message : String(error);
  return new EngineError(
    "UPLOAD_FAILED",
    `Files could not be unpacked at ${path} in the container ${container}. ${why}`,
    {
      hint: "The container and the directory must exist, and the directory must be writable and have room.",
      details: { ...(error instanceof EngineError ? error.details : {}), container, path },
      cause: error,
    },
  );
}
