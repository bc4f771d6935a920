import { EngineError } from "../errors.ts";
import { isContainerMissing, statusOf, wordsOf } from "./answer.ts";
import type { EngineCall, EngineClient } from "./client.ts";
import { recordOf, stringOf, stringsOf } from "./shape.ts";

/** What a container is made of, in the words of Docker's API or of Podman's own; the engine wall renders it. */
export type ContainerBody = Readonly<Record<string, unknown>>;

export interface CreatedContainer {
  readonly id: string;
  readonly warnings: readonly string[];
}

/** A name that is taken is a CONTAINER_CREATE_FAILED whose details say `conflict: true`. */
export async function createContainer(
  client: EngineClient,
  name: string,
  body: ContainerBody,
  { api = "docker", ...options }: CallOptions & { readonly api?: "docker" | "libpod" } = {},
): Promise<CreatedContainer> {
  const answer = await client
    .request({
      ...options,
      method: "POST",
      path: "/containers/create",
      ...(api === "docker" ? { query: { name } } : {}),
      api,
      body,
      refusedAs: "CONTAINER_CREATE_FAILED",
    })
    .catch((error) => {
      throw createTrouble(error, name, String(body["Image"] ?? body["image"]));
    });
  const { Id, Warnings } = recordOf(await answer.json());
  return { id: stringOf(Id), warnings: stringsOf(Warnings) };
}

export async function startContainer(client: EngineClient, id: string, options: CallOptions = {}): Promise<void> {
  await settle(client, {
    ...options,
    method: "POST",
    path: containerPath(id, "/start"),
    refusedAs: "CONTAINER_START_FAILED",
  });
}

/** False where nothing was there to be killed: no such container, or it does not run. */
export async function killContainer(
  client: EngineClient,
  id: string,
  signal: string,
  options: CallOptions = {},
): Promise<boolean> {
  const call = { ...options, method: "POST", path: containerPath(id, "/kill"), query: { signal } } as const;
  try {
    return (await settle(client, { ...call, accept: [404, 409] })) < 400;
  } catch (error) {
    // Podman 4 says it with 500.
    if (statusOf(error) === 500 && /can only kill running containers/.test(wordsOf(error))) return false;
    throw error;
  }
}

/** Kills and removes, with its anonymous volumes. It is enough that the container is gone, or is about to be. */
export async function removeContainer(
  client: EngineClient,
  id: string,
  options: CallOptions & { readonly force?: boolean } = {},
): Promise<void> {
  const { force = true, ...rest } = options;
  try {
    await settle(client, {
      ...rest,
      method: "DELETE",
      path: containerPath(id),
      // Podman would otherwise ask first, and wait as long as for a stop.
      query: { force, v: true, timeout: 0 },
      accept: [404],
    });
  } catch (error) {
    if (statusOf(error) !== 409 || !/already in progress/.test(wordsOf(error))) throw error;
  }
}

export interface ContainerEnd {
  readonly exitCode: number;
  readonly error: string | null;
}

export interface WaitOptions extends CallOptions {
  /**
   * What is waited for. `not-running` is true at once of a container that has not been started; `next-exit` is not, and
   * catches the end of one that removes itself, if it is asked before the start. Default: not-running.
   */
  readonly condition?: "not-running" | "next-exit" | "removed";
}

/** Waits for a container's end. Null where there is none, or none any more. An exit code of -1 is one nobody knows. */
export async function waitContainer(
  client: EngineClient,
  id: string,
  options: WaitOptions = {},
): Promise<ContainerEnd | null> {
  const { condition = "not-running", ...rest } = options;
  const answer = await client.request({
    timeoutMs: null,
    ...rest,
    method: "POST",
    path: containerPath(id, "/wait"),
    query: { condition },
    accept: [404],
  });
  if (answer.status === 404) {
    await answer.discard();
    return null;
  }
  const { StatusCode, Error: trouble } = recordOf(await answer.json());
  const message = stringOf(recordOf(trouble)["Message"]);
  return { exitCode: typeof StatusCode === "number" ? StatusCode : -1, error: message === "" ? null : message };
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | null;
}

/** An id or a name is one part of a path, and nothing else that an engine would understand. */
export function containerPath(id: string, rest = ""): string {
  if (!/^[A-Za-z0-9][A-Za-z0-9_.-]*$/.test(id)) {
    throw new EngineError("ENGINE_REFUSED", `${JSON.stringify(id)} cannot be the name or id of a container.`, {
      details: { container: id },
    });
  }
  return `/containers/${id}${rest}`;
}

/** The status; 404 also where the engine says in other ways that there is no such container. */
async function settle(client: EngineClient, call: EngineCall): Promise<number> {
  const answer = await client.request(call).catch((error: unknown) => {
    if (call.accept?.includes(404) && isContainerMissing(error)) return null;
    throw error;
  });
  if (answer === null) return 404;
  await answer.discard();
  return answer.status;
}

function createTrouble(error: unknown, name: string, image: string): unknown {
  const status = statusOf(error);
  if (!(error instanceof EngineError) || status === undefined) return error;
  const words = wordsOf(error);
  if (status === 404 && /image|manifest|reference/i.test(words)) {
    return new EngineError("IMAGE_NOT_FOUND", `The engine does not have the image ${image}.`, {
      hint: `Pull or build it: \`podman pull ${image}\` or \`docker pull ${image}\`, on the engine's machine.`,
      details: { image, words },
      cause: error,
    });
  }
  // Podman 4 refuses a taken name with 500.
  const conflict = status === 409 || /name .* (is )?already in use/i.test(words);
  return new EngineError("CONTAINER_CREATE_FAILED", `The container ${name} could not be created. ${error.message}`, {
    details: { ...error.details, container: name, image, conflict },
    cause: error,
  });
}
