import { EngineError } from "../errors.ts";
import { statusOf, wordsOf } from "./answer.ts";
import type { EngineClient } from "./client.ts";
import { endpointText } from "./endpoint.ts";

const pingMs = 10_000;

/** Makes sure that an engine answers. */
export async function ping(
  client: EngineClient,
  options: { readonly signal?: AbortSignal | undefined; readonly timeoutMs?: number } = {},
): Promise<void> {
  const { signal, timeoutMs = pingMs } = options;
  const place = endpointText(client.endpoint);
  try {
    const answer = await client.request({ method: "GET", path: "/_ping", api: "bare", signal, timeoutMs });
    // Every engine names its API here; a web server that happens to listen does not.
    const isEngine = answer.header("api-version") !== undefined || answer.header("libpod-api-version") !== undefined;
    await answer.discard();
    if (!isEngine) throw unhealthy(place, `${answer.status} without the version of its API`);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    if (error.details["reason"] === "timeout") throw silent(place, timeoutMs, error);
    if (statusOf(error) !== undefined) throw unhealthy(place, wordsOf(error), error);
    // What answers but does not speak HTTP.
    if (String(error.details["reason"]).startsWith("HPE_")) throw unhealthy(place, "not in HTTP", error);
    throw error;
  }
}

function unhealthy(place: string, answer: string, cause?: unknown): EngineError {
  return new EngineError(
    "ENGINE_HEALTH_CHECK_FAILED",
    `What listens at ${place} is not a container engine: it answers ${answer}.`,
    {
      hint: "Name the engine's own address, with https:// or DOCKER_TLS_VERIFY=1 where it expects TLS.",
      details: { endpoint: place },
      cause,
    },
  );
}

function silent(place: string, timeoutMs: number, cause: unknown): EngineError {
  return new EngineError(
    "ENGINE_HEALTH_CHECK_TIMEOUT",
    `The engine at ${place} has not answered for ${timeoutMs / 1_000} seconds.`,
    {
      hint: "It may be overloaded or stuck: see its log, or restart it.",
      details: { endpoint: place },
      cause,
    },
  );
}
