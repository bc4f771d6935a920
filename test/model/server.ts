import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { brotliDecompressSync, gunzipSync, inflateSync } from "node:zlib";
import { chat } from "./chat.ts";
import { type Conversation, nextStep } from "./conversation.ts";
import type { Dialect, StreamEvent } from "./dialect.ts";
import { gemini } from "./gemini.ts";
import { messages } from "./messages.ts";
import { responses } from "./responses.ts";

const dialects: readonly Dialect[] = [responses, chat, messages, gemini];

/** A request as it came; of one that was understood also what it said. */
export interface ModelRequest extends Partial<Conversation> {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The protocol, or null where it was in none. */
  readonly dialect: string | null;
}

export interface ModelServer extends AsyncDisposable {
  /** Without a path: the base of Anthropic's; `/v1` behind it is OpenAI's. */
  readonly url: string;
  /** All requests so far, oldest first. */
  readonly requests: readonly ModelRequest[];
}

export interface ModelOptions {
  /** Where to listen. Default: loopback, at a port that is free. */
  readonly host?: string;
  readonly port?: number;
  /** Told of each request before it is answered. */
  readonly onRequest?: (request: ModelRequest) => void;
}

/** A model provider in which the prompt is the script: see `nextStep`. */
export async function serveModel(options: ModelOptions = {}): Promise<ModelServer> {
  const { host = "127.0.0.1", port = 0, onRequest } = options;
  const requests: ModelRequest[] = [];
  const server = createServer((request, response) => {
    hear(request)
      .then((heard) => {
        requests.push(heard);
        onRequest?.(heard);
        answer(heard, response);
      })
      .catch((error: unknown) => sendJson(response, 400, { error: { message: String(error) } }));
  });
  server.listen(port, host);
  await once(server, "listening");
  return {
    url: `http://${host}:${(server.address() as AddressInfo).port}`,
    requests,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function hear(request: IncomingMessage): Promise<ModelRequest> {
  const { method = "", headers } = request;
  const path = (request.url ?? "").replace(/\?.*$/, "");
  const bytes = unpack(await buffer(request), headers["content-encoding"]);
  const dialect = method === "POST" ? dialects.find((each) => each.isAt(path)) : undefined;
  const about = { method, path, headers, dialect: dialect?.name ?? null };
  if (dialect === undefined) return about;
  return { ...about, ...dialect.read(JSON.parse(bytes.toString("utf8")) as never, path) };
}

function unpack(bytes: Buffer, encoding: string | undefined): Buffer {
  if (encoding === undefined || encoding === "identity") return bytes;
  if (encoding === "gzip") return gunzipSync(bytes);
  if (encoding === "deflate") return inflateSync(bytes);
  if (encoding === "br") return brotliDecompressSync(bytes);
  throw new Error(`a body in ${encoding} cannot be read`);
}

function answer(heard: ModelRequest, response: ServerResponse): void {
  const { path, model = "model", isStreamed } = heard;
  const dialect = dialects.find(({ name }) => name === heard.dialect);
  if (dialect === undefined) answerBeside(heard, response);
  else if (/count_?tokens$/i.test(path)) sendJson(response, 200, { input_tokens: 1, totalTokens: 1 });
  else {
    const step = nextStep(heard as Conversation);
    if (isStreamed) sendEvents(response, dialect.events(step, model));
    else sendJson(response, 200, dialect.whole(step, model));
  }
}

/** What agents ask for beside the conversation. */
function answerBeside({ method, path }: ModelRequest, response: ServerResponse): void {
  if (method === "HEAD") response.writeHead(200).end();
  else if (method === "GET" && path === "/v1/models") {
    const model = { id: "model", object: "model", type: "model", display_name: "Model", created: 1, owned_by: "test" };
    sendJson(response, 200, { object: "list", data: [model], has_more: false });
  } else sendJson(response, 404, { error: { type: "not_found_error", message: `there is no ${path}` } });
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function sendEvents(response: ServerResponse, events: readonly StreamEvent[]): void {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  for (const { name, data } of events) {
    const words = typeof data === "string" ? data : JSON.stringify(data);
    response.write(`${name === undefined ? "" : `event: ${name}\n`}data: ${words}\n\n`);
  }
  response.end();
}
