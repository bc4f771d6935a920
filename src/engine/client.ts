import type { ClientRequest, IncomingMessage } from "node:http";
import { type Duplex, pipeline, type Readable } from "node:stream";
import { EngineError, type ErrorCode } from "../errors.ts";
import { type EngineAnswer, makeAnswer, refusalOf, type Translate } from "./answer.ts";
import { type Deadline, startDeadline } from "./deadline.ts";
import { openTransport, type TransportOptions } from "./dial.ts";
import { type Endpoint, endpointText } from "./endpoint.ts";
import type { Transport } from "./transport.ts";

export interface EngineCall {
  readonly method: "GET" | "HEAD" | "POST" | "PUT" | "DELETE";
  /** What follows the version, with its parts encoded: `/containers/json`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent as it comes, instead of a body. It is destroyed where the call fails. */
  readonly upload?: Readable;
  readonly signal?: AbortSignal | undefined;
  /** How long the answer may take, to its last byte. Null: for ever. Default: 120 s. */
  readonly timeoutMs?: number | null;
  /** Statuses from 400 on that are an answer and no refusal. */
  readonly accept?: readonly number[];
  /** The code of the error that a refusal becomes. Default: ENGINE_REFUSED. */
  readonly refusedAs?: ErrorCode;
  /** Which API: Docker's at the version that both sides know, Podman's own, or a path without version. */
  readonly api?: "docker" | "libpod" | "bare";
}

/** A connection to an engine. Calls run side by side, each on a connection that is kept for the next. */
export interface EngineClient extends Disposable {
  readonly endpoint: Endpoint;
  /** Resolves when the answer begins. Refusals are thrown, with the engine's own words. */
  request(call: EngineCall): Promise<EngineAnswer>;
  /** A call after which the connection is a plain stream in both directions. */
  hijack(call: EngineCall): Promise<Duplex>;
}

export type ConnectOptions = TransportOptions;

const answerMs = 120_000;
/** How long an engine may take to say that it wants the upload. Those that never say it get it then. */
const continueMs = 1_000;

/**
 * A client of the engine at an endpoint. A Unix socket is looked at first, and refused with a reason if it is missing
 * or closed to us; other endpoints are dialled by the first call.
 */
export function connectEngine(endpoint: Endpoint, options: ConnectOptions = {}): EngineClient {
  const transport = openTransport(endpoint, options);
  let version: Promise<string> | undefined;
  const prefixFor = async (call: EngineCall): Promise<string> => {
    if (call.api === "bare") return "";
    if (call.api === "libpod") return "/v4.0.0/libpod";
    version ??= negotiate(transport, endpoint).catch((error) => {
      version = undefined;
      throw error;
    });
    return `/v${await version}`;
  };
  return {
    endpoint,
    request: async (call) => {
      const answer = await perform(transport, endpoint, call, await prefixOrCleanUp(prefixFor, call));
      // Whoever has made sure that the engine answers need not be asked a second time.
      if (call.path === pingPath) version ??= Promise.resolve(versionIn(answer));
      return answer;
    },
    hijack: async (call) => await upgrade(transport, endpoint, call, await prefixFor(call)),
    [Symbol.dispose]: () => transport[Symbol.dispose](),
  };
}

const pingPath = "/_ping";

/** 1.40 is what Podman and old Dockers speak; Docker 29 and later know nothing below 1.44. */
async function negotiate(transport: Transport, endpoint: Endpoint): Promise<string> {
  const answer = await perform(transport, endpoint, { method: "GET", path: pingPath, timeoutMs: 10_000 }, "");
  await answer.discard();
  return versionIn(answer);
}

function versionIn(answer: EngineAnswer): string {
  const [, major, minor] = /^(\d+)\.(\d+)$/.exec(answer.header("api-version") ?? "") ?? [];
  return Number(major) > 1 || Number(minor) >= 44 ? "1.44" : "1.40";
}

async function prefixOrCleanUp(prefixFor: (call: EngineCall) => Promise<string>, call: EngineCall): Promise<string> {
  try {
    return await prefixFor(call);
  } catch (error) {
    call.upload?.destroy();
    throw error;
  }
}

async function perform(
  transport: Transport,
  endpoint: Endpoint,
  call: EngineCall,
  prefix: string,
): Promise<EngineAnswer> {
  const { deadline, translate } = begin(transport, endpoint, call);
  let response: IncomingMessage;
  try {
    response = await respond(open(transport, call, prefix, {}, deadline), call);
  } catch (error) {
    deadline[Symbol.dispose]();
    call.upload?.destroy();
    throw await translate(error);
  }
  response.once("close", () => deadline[Symbol.dispose]());
  const answer = makeAnswer(response, translate);
  if (answer.status < 400 || call.accept?.includes(answer.status)) return answer;
  call.upload?.destroy();
  throw await refusalOf(answer, call);
}

async function upgrade(transport: Transport, endpoint: Endpoint, call: EngineCall, prefix: string): Promise<Duplex> {
  using running = begin(transport, endpoint, call);
  const headers = { connection: "Upgrade", upgrade: "tcp" };
  let outcome: { readonly stream: Duplex } | { readonly response: IncomingMessage };
  try {
    const request = open(transport, call, prefix, headers, running.deadline);
    const upgraded = new Promise<{ readonly stream: Duplex }>((resolve) => {
      request.once("upgrade", (_response, stream, head) => {
        if (head.length > 0) stream.unshift(head);
        resolve({ stream });
      });
    });
    outcome = await Promise.race([upgraded, respond(request, call).then((response) => ({ response }))]);
  } catch (error) {
    throw await running.translate(error);
  }
  if ("stream" in outcome) return outcome.stream;
  const answer = makeAnswer(outcome.response, running.translate);
  if (answer.status >= 400) throw await refusalOf(answer, call);
  outcome.response.destroy();
  throw new EngineError("PROTOCOL", `The engine answered ${call.path} without handing over the connection.`, {
    details: { status: answer.status, path: call.path },
  });
}

interface Running extends Disposable {
  readonly deadline: Deadline;
  readonly translate: Translate;
}

function begin(transport: Transport, endpoint: Endpoint, call: EngineCall): Running {
  call.signal?.throwIfAborted();
  const deadline = startDeadline(call.signal, call.timeoutMs === undefined ? answerMs : call.timeoutMs);
  return {
    deadline,
    translate: async (error) => {
      if (call.signal?.aborted) return call.signal.reason;
      if (deadline.hasPassed()) return unanswered(endpoint, call);
      return error instanceof EngineError ? error : await transport.explain(error);
    },
    [Symbol.dispose]: () => deadline[Symbol.dispose](),
  };
}

function open(
  transport: Transport,
  { method, path, query, body, upload }: EngineCall,
  prefix: string,
  extra: Readonly<Record<string, string>>,
  { signal }: Deadline,
): ClientRequest {
  const content = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
  const headers = {
    ...(content === undefined ? {} : { "content-type": "application/json", "content-length": content.length }),
    ...(upload === undefined ? {} : { "content-type": "application/x-tar", expect: "100-continue" }),
    ...extra,
  };
  const target = transport.target();
  const request = transport.request({ ...target, method, path: prefix + path + queryText(query), headers, signal });
  // A refusal that is certain before the first byte (no such container) comes before anything was sent in vain.
  if (upload === undefined) request.end(content);
  else sendUpload(request, upload);
  return request;
}

function sendUpload(request: ClientRequest, upload: Readable): void {
  const send = () => {
    clearTimeout(timer);
    if (!request.destroyed) pipeline(upload, request, () => {});
  };
  const timer = setTimeout(send, continueMs);
  request.once("continue", send);
  request.once("response", () => clearTimeout(timer));
  request.once("close", () => clearTimeout(timer));
  // An upload that breaks before it was asked for must not wait for ever.
  upload.once("error", (error) => request.destroy(error));
}

function respond(request: ClientRequest, { upload }: EngineCall): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.once("response", (response) => {
      // After the answer, an error is the body's.
      request.on("error", () => {});
      resolve(response);
    });
    request.once("error", reject);
    upload?.once("error", reject);
  });
}

function queryText(query: EngineCall["query"] = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) parameters.set(name, String(value));
  return parameters.size === 0 ? "" : `?${parameters}`;
}

function unanswered(endpoint: Endpoint, { path, timeoutMs }: EngineCall): EngineError {
  const place = endpointText(endpoint);
  const seconds = (timeoutMs ?? answerMs) / 1_000;
  return new EngineError(
    "ENGINE_CONNECTION_FAILED",
    `The engine at ${place} has not answered for ${seconds} seconds.`,
    {
      hint: "It may be overloaded or stuck; its log or a restart may help.",
      details: { endpoint: place, path, reason: "timeout" },
    },
  );
}
