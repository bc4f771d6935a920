import type { EngineClient } from "./client.ts";
import { type CallOptions, containerPath } from "./containers.ts";
import { inspectContainer } from "./inspection.ts";
import { makeDemultiplexer } from "./multiplex.ts";

export interface LogOptions extends CallOptions {
  /** How many of the last lines. Default: 100. */
  readonly tail?: number;
  /** How much of the end is kept. Default: 64 KiB. */
  readonly longest?: number;
}

/** The end of what a container has written, both streams in one. Empty where there is no such container. */
export async function containerLogs(client: EngineClient, id: string, options: LogOptions = {}): Promise<string> {
  const { tail = 100, longest = 65_536, ...rest } = options;
  const container = await inspectContainer(client, id, rest);
  if (container === null) return "";
  const query = { stdout: true, stderr: true, tail };
  const answer = await client.request({
    ...rest,
    method: "GET",
    path: containerPath(id, "/logs"),
    query,
    accept: [404],
  });
  if (answer.status === 404) {
    await answer.discard();
    return "";
  }
  const take = container.tty ? (bytes: Buffer) => [{ bytes }] : makeDemultiplexer();
  let kept: Buffer = Buffer.alloc(0);
  for await (const chunk of answer.body as AsyncIterable<Buffer>) {
    kept = Buffer.concat([kept, ...take(chunk).map(({ bytes }) => bytes)]);
    if (kept.length > longest) kept = kept.subarray(kept.length - longest);
  }
  return kept.toString("utf8");
}
