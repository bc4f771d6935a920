import type { HostedProtocol } from "./policy.ts";
import { decodeText, type Member, type Scanner, type Span } from "./scanner.ts";

/** What a line says, as positions in it. `id` is as it was spelled. */
export type Message =
  | { readonly kind: "request"; readonly method: string; readonly id: string; readonly params: Span | null }
  | { readonly kind: "notification"; readonly method: string; readonly params: Span | null }
  | { readonly kind: "response"; readonly result: Span | null; readonly error: Span | null }
  /** `answer` is the id to answer with: nobody waits for an answer to what has no method. */
  | { readonly kind: "refused"; readonly reason: string; readonly answer: string | null };

const known: ReadonlySet<string> = new Set(["jsonrpc", "id", "method", "params", "result", "error"]);
/** Methods are words of a protocol, not texts. A spelling with escapes means the same only to some. */
const plainMethod = /^[!#-[\]-~]{1,256}$/;
const plainName = /^[ -~]*$/;
const plainNumber = /^(?:0|-?[1-9]\d{0,15})$/;
const oddName = "a name is spelled in a way that readers differ about";
const quote = 0x22;
const mostIdLength = 1024;

/**
 * Names as a lenient reader may match them: in any case, also by Unicode's folding, in camelCase or snake_case, and
 * with blanks that somebody trims. Shapes are matched by it, so that no spelling of a member escapes what is done to it.
 */
export function fold(name: string): string {
  if (/^[A-Za-z]*$/.test(name)) return name.toLowerCase();
  return name
    .normalize("NFKC")
    .toLowerCase()
    .replace(/[\s_-]/g, "");
}

/** The message that an object is, or why it is none that everybody would understand the same way. */
export function readMessage(scanner: Scanner, members: readonly Member[], protocol: HostedProtocol): Message {
  let version: Span | null = null;
  let idSpan: Span | null = null;
  let methodSpan: Span | null = null;
  let params: Span | null = null;
  let result: Span | null = null;
  let error: Span | null = null;
  let problem: string | null = null;
  for (const member of members) {
    const { name } = member;
    if (member.isEscaped) problem = oddName;
    else if (name === "method") methodSpan = member;
    else if (name === "params") params = member;
    else if (name === "id") idSpan = member;
    else if (name === "jsonrpc") version = member;
    else if (name === "result") result = member;
    else if (name === "error") error = member;
    else if (!plainName.test(name) || known.has(fold(name))) problem = oddName;
  }
  const id = idSpan && decodeText(scanner.text(idSpan.start, idSpan.end));
  const method = methodSpan && readMethod(scanner, methodSpan);
  const isResponse = result !== null || error !== null;
  if (id !== null && !isId(id)) problem = "its id is neither a string nor a whole number";
  else if (!isVersion(scanner, version, protocol)) problem = "it is not of JSON-RPC 2.0";
  else if (methodSpan !== null && isResponse) problem = "it is a request and a response in one";
  else if (methodSpan !== null && method === null) problem = "its method is not a plain name";
  else if (methodSpan === null && (id === null || !isResponse)) problem = "it is neither a request nor a response";

  if (problem !== null) {
    const answer = methodSpan === null ? null : id !== null && isId(id) ? id : "null";
    return { kind: "refused", reason: problem, answer };
  }
  if (method === null) return { kind: "response", result, error };
  return id === null ? { kind: "notification", method, params } : { kind: "request", method, id, params };
}

function readMethod(scanner: Scanner, { start, end }: Span): string | null {
  if (scanner.byte(start) !== quote) return null;
  const method = scanner.text(start + 1, end - 1);
  return plainMethod.test(method) ? method : null;
}

/** Codex leaves the version out, but a wrong one is wrong there as well. */
function isVersion(scanner: Scanner, version: Span | null, protocol: HostedProtocol): boolean {
  if (version === null) return protocol === "codex_app_server";
  return scanner.text(version.start, version.end) === '"2.0"';
}

/** Numbers that are the same to all readers: 1.0, 1e0 and 2^53 + 1 are not. */
function isId(id: string): boolean {
  if (id.startsWith('"')) return id.length <= mostIdLength;
  return id === "null" || (plainNumber.test(id) && Number.isSafeInteger(Number(id)));
}
