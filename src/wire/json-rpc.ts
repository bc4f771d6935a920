import {
  ConfigError,
  EngineError,
  type ErrorCode,
  type ErrorOptions,
  errorTable,
  FilesystemError,
  GitHubError,
  MachineError,
  PodbotError,
  PolicyError,
  SessionError,
  UsageError,
  WallError,
} from "../errors.ts";

export type RequestId = string | number | null;

/** JSON-RPC knows parameters by name and by position, and nothing else. */
export type Params = Readonly<Record<string, unknown>> | readonly unknown[];

export type Message =
  | { readonly kind: "request"; readonly id: RequestId; readonly method: string; readonly params?: Params }
  | { readonly kind: "notification"; readonly method: string; readonly params?: Params }
  | { readonly kind: "result"; readonly id: RequestId; readonly result: unknown }
  | { readonly kind: "error"; readonly id: RequestId; readonly error: PodbotError };

/** Codes that JSON-RPC itself reserves. Failures that Podbot can name go as `podbot`, with their own code in the data. */
export const rpcCodes = { parse: -32700, request: -32600, method: -32601, internal: -32603, podbot: -32000 } as const;

/** The message in one line. What is not one, by the letter of JSON-RPC 2.0 and without batches, is a PROTOCOL error. */
export function parseMessage(line: Uint8Array | string): Message {
  const value = parseJson(line);
  if (!isObject(value) || value["jsonrpc"] !== "2.0") throw nonsense("what is not a JSON-RPC 2.0 message");
  const { method } = value;
  if (method === undefined) return parseResponse(value);
  if (typeof method !== "string") throw nonsense("a method that is not a string");
  if ("result" in value || "error" in value) throw nonsense("a request and its response in one");
  const { params } = value;
  if (params !== undefined && !isObject(params) && !Array.isArray(params)) {
    throw nonsense("parameters that are neither an object nor a list");
  }
  const call = params === undefined ? { method } : { method, params };
  return "id" in value ? { kind: "request", id: parseId(value["id"]), ...call } : { kind: "notification", ...call };
}

export function encodeRequest(id: RequestId, method: string, params?: Params): string {
  return encode({ id, method, params });
}

export function encodeNotification(method: string, params?: Params): string {
  return encode({ method, params });
}

export function encodeResult(id: RequestId, result: unknown): string {
  return encode({ id, result: result === undefined ? null : result });
}

/** Any failure can cross. What is not Podbot's own is a defect, and says so. */
export function encodeError(id: RequestId, failure: unknown, rpcCode: number = rpcCodes.podbot): string {
  const error =
    failure instanceof PodbotError
      ? failure
      : new PodbotError("INTERNAL", failure instanceof Error ? failure.message : String(failure));
  const { code, hint, details, message } = error;
  try {
    return encode({ id, error: { code: rpcCode, message, data: { code, hint, details } } });
  } catch {
    // Details that JSON cannot hold must not hide the failure that they belong to.
    return encode({ id, error: { code: rpcCode, message, data: { code, hint } } });
  }
}

function encode(message: Readonly<Record<string, unknown>>): string {
  return `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`;
}

function parseJson(line: Uint8Array | string): unknown {
  try {
    const text =
      typeof line === "string" ? line : new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(line);
    return JSON.parse(text);
  } catch (cause) {
    throw nonsense("what is not JSON", cause);
  }
}

function parseResponse(value: Readonly<Record<string, unknown>>): Message {
  if (!("id" in value) || "result" in value === "error" in value) {
    throw nonsense("what is neither a request nor a response");
  }
  const id = parseId(value["id"]);
  if ("result" in value) return { kind: "result", id, result: value["result"] };
  const { error } = value;
  if (!isObject(error) || !Number.isInteger(error["code"]) || typeof error["message"] !== "string") {
    throw nonsense("an error without code or message");
  }
  return { kind: "error", id, error: rebuild(error["code"] as number, error["message"], error["data"]) };
}

function parseId(id: unknown): RequestId {
  if (typeof id === "string" || id === null || Number.isFinite(id)) return id as RequestId;
  throw nonsense("an id that is not a string, a number or null");
}

/** The error that the other end had. Of one that this Podbot does not know, the words and the hint are kept. */
function rebuild(rpcCode: number, message: string, data: unknown): PodbotError {
  const { code, hint, details } = isObject(data) ? data : ({} as Readonly<Record<string, unknown>>);
  const options: ErrorOptions = {
    ...(typeof hint === "string" ? { hint } : {}),
    ...(isObject(details) ? { details } : {}),
  };
  if (typeof code === "string" && Object.hasOwn(errorTable, code)) {
    return new families[code as ErrorCode](code as ErrorCode, message, options);
  }
  if (rpcCode === rpcCodes.internal) return new PodbotError("INTERNAL", message, options);
  return new SessionError("PROTOCOL", message, { ...options, details: { ...options.details, rpcCode } });
}

function nonsense(what: string, cause?: unknown): SessionError {
  return new SessionError("PROTOCOL", `The other end sent ${what}.`, cause === undefined ? {} : { cause });
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A code may be thrown by more than one family; across the wire it is of the one that owns it. */
const families: Readonly<Record<ErrorCode, typeof PodbotError>> = {
  USAGE: UsageError,
  CONFIG_INVALID: ConfigError,
  CONFIG_UNREADABLE: ConfigError,
  CONFIG_AMBIGUOUS: ConfigError,
  CONFIG_NOT_FOUND: ConfigError,
  CONFIG_UNTRUSTED: ConfigError,
  SECRET_MISSING: ConfigError,
  SECRET_UNMASKABLE: ConfigError,
  PRESET_UNKNOWN: PolicyError,
  PATTERN_INVALID: PolicyError,
  NETWORK_RULE_INVALID: PolicyError,
  PATH_REFUSED: PolicyError,
  COMMAND_RULE_INVALID: PolicyError,
  HOME_INVALID: FilesystemError,
  PLATFORM_UNSUPPORTED: MachineError,
  BWRAP_MISSING: MachineError,
  BWRAP_TOO_OLD: WallError,
  NATIVE_MISSING: MachineError,
  USERNS_REFUSED: WallError,
  NESTED: MachineError,
  GAP: WallError,
  PATH_CHANGED: WallError,
  WALL_FAILED: WallError,
  DOORS_FAILED: WallError,
  DOCKER_SOCKET_MISSING: WallError,
  FILESYSTEM: FilesystemError,
  COMMAND_NOT_FOUND: WallError,
  COMMAND_NOT_EXECUTABLE: WallError,
  AGENT_UNKNOWN: ConfigError,
  AGENT_MISSING: MachineError,
  SESSION_NOT_FOUND: SessionError,
  SESSION_AMBIGUOUS: SessionError,
  SESSION_ENDED: SessionError,
  SESSION_UNREACHABLE: SessionError,
  BOX_LOST: SessionError,
  PROTOCOL: SessionError,
  EXEC_FAILED: SessionError,
  UPLOAD_FAILED: SessionError,
  ENGINE_NOT_FOUND: EngineError,
  ENGINE_SOCKET_NOT_FOUND: EngineError,
  ENGINE_PERMISSION_DENIED: EngineError,
  ENGINE_CONNECTION_FAILED: EngineError,
  ENGINE_HEALTH_CHECK_FAILED: EngineError,
  ENGINE_HEALTH_CHECK_TIMEOUT: EngineError,
  ENGINE_REFUSED: EngineError,
  IMAGE_REQUIRED: ConfigError,
  IMAGE_NOT_FOUND: EngineError,
  IMAGE_BASE_MISSING: EngineError,
  IMAGE_BUILD_FAILED: EngineError,
  OCI_RUNTIME_MISSING: EngineError,
  CONTAINER_CREATE_FAILED: EngineError,
  CONTAINER_START_FAILED: EngineError,
  GITHUB_CONFIG: GitHubError,
  GITHUB_KEY_INVALID: GitHubError,
  GITHUB_AUTHENTICATION: GitHubError,
  GITHUB_FORBIDDEN: GitHubError,
  GITHUB_RATE_LIMITED: GitHubError,
  GITHUB_NOT_FOUND: GitHubError,
  GITHUB_UNAVAILABLE: GitHubError,
  GITHUB_UNEXPECTED: GitHubError,
  GITHUB_TOKEN_EXPIRED: GitHubError,
  GITHUB_TOKEN_REFRESH: GitHubError,
  REPOSITORY_INVALID: PolicyError,
  CLONE_FAILED: GitHubError,
  MOUNT_REFUSED: PolicyError,
  RUNTIME_DIRECTORY: MachineError,
  INTERNAL: PodbotError,
};
