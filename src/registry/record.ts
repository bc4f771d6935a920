import { basename, isAbsolute, normalize } from "node:path";
import type { ProcessMark } from "../machine/process-mark.ts";

/** Ten letters and digits, by chance. Whatever belongs to a session is named after it. */
export type SessionId = string;

/** What is known of a session without asking anybody: written by its keeper, before anything else is done for it. */
export interface SessionRecord {
  readonly version: 1;
  readonly id: SessionId;
  /** As Date.toISOString writes it, like all times here. */
  readonly createdAt: string;
  readonly keeper: ProcessMark;
  /** Whether the keeper's process is there for this session alone, and not a program that does other things as well. */
  readonly dedicated: boolean;
  readonly wall: string;
  /** The engine that holds the session's container; null behind bubblewrap. */
  readonly engine: EngineMark | null;
  /** Whose tokens the box is given; null: none. */
  readonly github: GitHubMark | null;
  /** The session's runtime directory. */
  readonly directory: string;
  readonly cwd: string;
  readonly agent: string;
  readonly command: readonly string[];
  readonly detached: boolean;
  /** `prepared`: its box waits for somebody to take it. */
  readonly phase: "starting" | "prepared" | "running" | "ended";
  /** Null until the phase is "ended". */
  readonly endedAt: string | null;
  /** Null until the phase is "ended", and where the session ended without its command ever running. */
  readonly exit: { readonly code: number; readonly killed: boolean } | null;
}

/** Where a container is to be found again. */
export interface EngineMark {
  readonly endpoint: string;
  /** Podbot's own service, and which runtime it was started with; null for an engine of somebody else's. */
  readonly service: { readonly runtime: string | null } | null;
}

/** What it takes to mint the session's token again. Holds no secret. */
export interface GitHubMark {
  readonly appId: number;
  readonly installationId: number;
  readonly privateKeyPath: string;
  readonly apiUrl: string;
  /** `OWNER/NAME`. */
  readonly repository: string;
  readonly permissions: Readonly<Record<string, "read" | "write">>;
  /** `masked`: the token itself is with the keeper alone, and nobody else can replace it. */
  readonly token: "file" | "masked";
}

/** A record that says nothing, and why. */
export interface DamagedRecord {
  readonly id: SessionId;
  readonly damaged: string;
}

/** Ask this before a name becomes part of a path. */
export function isSessionId(name: string): name is SessionId {
  return /^[a-z][a-z0-9]{9}$/.test(name);
}

export function isDamaged(record: SessionRecord | DamagedRecord): record is DamagedRecord {
  return "damaged" in record;
}

/** The record of the session with this id, or what is wrong with it. */
export function parseRecord(text: string, id: SessionId): SessionRecord | DamagedRecord {
  const value = parseJson(text);
  if (!isObject(value)) return { id, damaged: "its record is not a JSON object" };
  const { version } = value;
  if (version !== 1) {
    const known = typeof version === "number";
    return {
      id,
      damaged: known ? `its record is of version ${version}; this Podbot reads 1` : "its record has no version",
    };
  }
  if (value["id"] !== id) return { id, damaged: "its record is that of another session" };
  const wrong = Object.keys(fields).find((name) => !fields[name as keyof typeof fields](value[name], id));
  if (wrong !== undefined) return { id, damaged: `in its record, "${wrong}" makes no sense` };
  const record = pick(value, ["version", "id", ...Object.keys(fields)]) as unknown as SessionRecord;
  const { phase, endedAt, exit } = record;
  if ((phase === "ended") !== (endedAt !== null) || (phase !== "ended" && exit !== null)) {
    return { id, damaged: "its record says both that it has ended and that it has not" };
  }
  return {
    ...record,
    engine: pickEngine(record.engine),
    github: pickGitHub(record.github),
    keeper: pick(record.keeper, ["pid", "started", "space", "machine"]) as unknown as ProcessMark,
    exit: exit === null ? null : { code: exit.code, killed: exit.killed },
  };
}

type Check = (value: unknown, id: SessionId) => boolean;

const isText: Check = (value) => typeof value === "string" && !value.includes("\0");
const isPath: Check = (value) =>
  isText(value, "") && isAbsolute(value as string) && normalize(value as string) === value;
const isTime: Check = (value) =>
  typeof value === "string" &&
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value) &&
  !Number.isNaN(Date.parse(value));

const fields: Readonly<Record<Exclude<keyof SessionRecord, "version" | "id">, Check>> = {
  createdAt: isTime,
  keeper: (value) =>
    isObject(value) &&
    Number.isSafeInteger(value["pid"]) &&
    (value["pid"] as number) > 0 &&
    typeof value["started"] === "string" &&
    typeof value["space"] === "string" &&
    typeof value["machine"] === "string",
  dedicated: (value) => typeof value === "boolean",
  wall: isText,
  // Absent in records of sessions from before there were engines.
  engine: (value) => value === undefined || value === null || isEngineMark(value),
  // Absent in records of sessions from before there were tokens.
  github: (value) => value === undefined || value === null || isGitHubMark(value),
  // It is removed with the session: a record must not be able to name anything else.
  directory: (value, id) => isPath(value, id) && basename(value as string) === id,
  cwd: isPath,
  agent: isText,
  command: (value) => Array.isArray(value) && value.every((word) => isText(word, "")),
  detached: (value) => typeof value === "boolean",
  phase: (value) => ["starting", "prepared", "running", "ended"].includes(value as string),
  endedAt: (value) => value === null || isTime(value, ""),
  exit: (value) =>
    value === null || (isObject(value) && Number.isSafeInteger(value["code"]) && typeof value["killed"] === "boolean"),
};

function pickEngine(mark: EngineMark | null | undefined): EngineMark | null {
  if (mark === null || mark === undefined) return null;
  const { endpoint, service } = mark;
  return { endpoint, service: service === null ? null : { runtime: service.runtime } };
}

function pickGitHub(mark: GitHubMark | null | undefined): GitHubMark | null {
  if (mark === null || mark === undefined) return null;
  const { appId, installationId, privateKeyPath, apiUrl, repository, permissions, token } = mark;
  return { appId, installationId, privateKeyPath, apiUrl, repository, permissions: { ...permissions }, token };
}

function isGitHubMark(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { appId, installationId, privateKeyPath, apiUrl, repository, permissions, token } = value;
  return (
    [appId, installationId].every((id) => Number.isSafeInteger(id) && (id as number) > 0) &&
    isPath(privateKeyPath, "") &&
    isText(apiUrl, "") &&
    isText(repository, "") &&
    /^[^/]+\/[^/]+$/.test(repository as string) &&
    isObject(permissions) &&
    Object.values(permissions).every((level) => level === "read" || level === "write") &&
    (token === "file" || token === "masked")
  );
}

export function isEngineMark(value: unknown): value is EngineMark {
  if (!isObject(value) || !isText(value["endpoint"], "")) return false;
  const { service } = value;
  return service === null || (isObject(service) && (service["runtime"] === null || isText(service["runtime"], "")));
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function pick(from: object, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(names.map((name) => [name, (from as Record<string, unknown>)[name]]));
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
