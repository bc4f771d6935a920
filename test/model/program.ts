import { createInterface } from "node:readline";
import { serveNames } from "./names.ts";
import { type ModelRequest, serveModel } from "./server.ts";

/** What the program prints, a line of JSON each. */
export type Report =
  | { readonly kind: "ready"; readonly url: string; readonly namesPort: number }
  | { readonly kind: "request"; readonly request: ModelRequest }
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "mark"; readonly mark: string };

/**
 * Provider and name server in a process of their own, which may be in another network. A line of input comes back as a
 * mark, behind which stands nothing that happened before. It ends with its input.
 */
export async function runModel([host = "127.0.0.1", port = "0", namesPort = "0"]: readonly string[]): Promise<void> {
  const report = (what: Report) => process.stdout.write(`${JSON.stringify(what)}\n`);
  await using model = await serveModel({
    host,
    port: Number(port),
    onRequest: (request) => report({ kind: "request", request }),
  });
  await using names = await serveNames({
    host,
    port: Number(namesPort),
    onName: (name) => report({ kind: "name", name }),
  });
  report({ kind: "ready", url: model.url, namesPort: names.port });
  for await (const mark of createInterface({ input: process.stdin })) report({ kind: "mark", mark });
}
