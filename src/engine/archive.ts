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
