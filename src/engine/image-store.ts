import type { Readable } from "node:stream";
import { EngineError } from "../errors.ts";
import { statusOf } from "./answer.ts";
import type { EngineClient } from "./client.ts";
import type { CallOptions } from "./containers.ts";
import { imagePath } from "./images.ts";
import { type EngineReport, readReports } from "./report.ts";

export interface PullOptions extends CallOptions {
  /** How long the registry may be silent. */
  readonly silenceMs: number;
}

/** Fetches an image from its registry. */
export async function pullImage(client: EngineClient, name: string, options: PullOptions): Promise<void> {
  const { signal, silenceMs } = options;
  const silence = new AbortController();
  const timer = setTimeout(() => silence.abort(), silenceMs);
  try {
    await follow(client, {
      query: splitName(name),
      signal: AbortSignal.any([silence.signal, ...(signal === undefined ? [] : [signal])]),
      onReport: () => timer.refresh(),
    });
  } catch (error) {
    if (signal?.aborted || !silence.signal.aborted) throw error;
    throw new EngineError("ENGINE_REFUSED", `The registry has said nothing for ${silenceMs / 1_000} seconds.`, {
      details: { image: name, reason: "timeout" },
      cause: error,
    });
  } finally {
    clearTimeout(timer);
  }
}

/** Makes an image of the tar of a root, which is read as fast as the engine takes it. */
export async function importImage(
  client: EngineClient,
  name: string,
  root: Readable,
  options: { readonly signal?: AbortSignal | undefined; readonly labels: Readonly<Record<string, string>> },
): Promise<void> {
  const changes = Object.entries(options.labels).map(([key, value]) => `LABEL ${key}=${JSON.stringify(value)}`);
  await follow(client, {
    // With its tag: Podman 4 takes no notice of one that stands alone.
    query: { fromSrc: "-", repo: name, changes: changes.join("\n") },
    upload: root,
    signal: options.signal,
    onReport: () => {},
  });
}

interface Following {
  readonly query: Readonly<Record<string, string>>;
  readonly upload?: Readable;
  readonly signal: AbortSignal | undefined;
  readonly onReport: (report: EngineReport) => void;
}

async function follow(client: EngineClient, { onReport, ...call }: Following): Promise<void> {
  const answer = await client.request({ ...call, timeoutMs: null, method: "POST", path: "/images/create" });
  for await (const report of readReports(answer)) {
    if (report.error !== null) {
      const details = { words: report.error };
      throw new EngineError("ENGINE_REFUSED", `The engine says: ${report.error}`, { details });
    }
    onReport(report);
  }
  call.signal?.throwIfAborted();
}

/** Gives an image one name more. */
export async function tagImage(
  client: EngineClient,
  name: string,
  further: string,
  options: CallOptions = {},
): Promise<void> {
  const { fromImage: repo, tag } = splitName(further);
  const path = imagePath(name, "/tag") ?? "";
  await (await client.request({ ...options, method: "POST", path, query: { repo, tag } })).discard();
}

/** By its id, or a name of it. False where something still needs it; then it stays. */
export async function removeImage(client: EngineClient, id: string, options: CallOptions = {}): Promise<boolean> {
  const path = imagePath(id);
  if (path === null) return false;
  try {
    const answer = await client.request({ ...options, method: "DELETE", path, accept: [404, 409] });
    await answer.discard();
    return answer.status < 400;
  } catch (error) {
    // Podman 4 says it with 500.
    if (statusOf(error) === 500) return false;
    throw error;
  }
}

/** The tag begins after the last colon, unless that one belongs to a registry's port. */
function splitName(name: string): { readonly fromImage: string; readonly tag: string } {
  const [, fromImage = name, tag = "latest"] = /^(.*?)(?::([^/:]+))?$/.exec(name) ?? [];
  return { fromImage, tag };
}
