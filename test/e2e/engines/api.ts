import { request } from "node:http";
import { text } from "node:stream/consumers";

/** One call of an engine's API, as Docker and Podman both have it. */
export async function call(
  socketPath: string,
  method: "GET" | "POST" | "DELETE",
  path: string,
  body?: unknown,
  timeoutMs = 60_000,
): Promise<{ readonly status: number; readonly body: string }> {
  return await new Promise((resolve, reject) => {
    const headers = body === undefined ? {} : { "Content-Type": "application/json" };
    const signal = AbortSignal.timeout(timeoutMs);
    const asking = request({ socketPath, method, path, headers, signal, agent: false }, (response) => {
      text(response).then((body) => resolve({ status: response.statusCode ?? 0, body }), reject);
    });
    asking.on("error", reject);
    asking.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
