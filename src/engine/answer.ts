import type { IncomingMessage } from "node:http";
import { EngineError, type ErrorCode } from "../errors.ts";

/** What the engine answered. Its body is to be read, or discarded, so that the connection can serve again. */
export interface EngineAnswer {
  readonly status: number;
  readonly body: IncomingMessage;
  header(name: string): string | undefined;
  /** Reads the whole body, which must be JSON of at most 16 MiB. */
  json(): Promise<unknown>;
  /** Reads the body without keeping it. */
  discard(): Promise<void>;
}

/** From what the socket says to what the owner should hear. */
export type Translate = (error: unknown) => Promise<unknown>;

const longestJson = 16 * 1_024 * 1_024;
const longestRefusal = 64 * 1_024;

export function makeAnswer(response: IncomingMessage, translate: Translate): EngineAnswer {
  return {
    status: response.statusCode ?? 0,
    body: response,
    header: (name) => {
      const value = response.headers[name.toLowerCase()];
      return Array.isArray(value) ? value[0] : value;
    },
    json: async () => parse(await read(response, longestJson, translate)),
    discard: async () => {
      try {
        await read(response, longestRefusal, translate);
      } catch {
        // The answer was in the status.
      }
    },
  };
}

/** The error for an answer that is a refusal, in the engine's own words. */
export async function refusalOf(
  answer: EngineAnswer,
  call: { readonly method: string; readonly path: string; readonly refusedAs?: ErrorCode },
): Promise<EngineError> {
  const words = await readWords(answer);
  return new EngineError(call.refusedAs ?? "ENGINE_REFUSED", `The engine says: ${words}`, {
    details: { status: answer.status, call: `${call.method} ${call.path}`, words },
  });
}

/** The status of a refusal, for those who know what it means. */
export function statusOf(error: unknown): number | undefined {
  const status = error instanceof EngineError ? error.details["status"] : undefined;
  return typeof status === "number" ? status : undefined;
}

/** What the engine said in a refusal. */
export function wordsOf(error: unknown): string {
  return error instanceof EngineError ? String(error.details["words"] ?? "") : "";
}

/** Docker says `message`; Podman adds the innermost `cause`, which its message already ends with. */
async function readWords(answer: EngineAnswer): Promise<string> {
  let text: string;
  try {
    text = (await read(answer.body, longestRefusal, async (error) => error)).trim();
  } catch {
    text = "";
  }
  try {
    const { message, cause } = JSON.parse(text) as { message?: unknown; cause?: unknown };
    const said = [message, cause].find((part) => typeof part === "string" && part !== "");
    if (typeof said === "string") return said.trim();
  } catch {
    // Something between us and the engine, or not an engine at all.
  }
  return `${answer.status} ${answer.body.statusMessage ?? ""} ${text.slice(0, 500)}`.trim();
}

async function read(body: IncomingMessage, most: number, translate: Translate): Promise<string> {
  const pieces: Buffer[] = [];
  let length = 0;
  try {
    for await (const piece of body as AsyncIterable<Buffer>) {
      length += piece.length;
      if (length > most) throw tooLong(most);
      pieces.push(piece);
    }
  } catch (error) {
    throw error instanceof EngineError ? error : await translate(error);
  }
  return Buffer.concat(pieces).toString("utf8");
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new EngineError("PROTOCOL", "The engine's answer is not JSON.", {
      hint: "Something else may listen where the engine should.",
      details: { begins: text.slice(0, 200) },
      cause: error,
    });
  }
}

function tooLong(most: number): EngineError {
  return new EngineError("PROTOCOL", `The engine's answer is longer than ${most / 1_024 / 1_024} MiB.`);
}

/** Podman, while it removes a container by itself, says so with many a status. */
export function isContainerMissing(error: unknown): boolean {
  return statusOf(error) !== undefined && /no such container|does not exist in database/i.test(wordsOf(error));
}
