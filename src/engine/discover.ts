import { statSync } from "node:fs";
import { EngineError, PodbotError } from "../errors.ts";
import { type Candidate, type CandidateInputs, defaultCandidates, namedCandidate } from "./candidates.ts";
import { connectEngine, type EngineClient } from "./client.ts";
import { type Endpoint, parseEndpoint } from "./endpoint.ts";
import { ping } from "./ping.ts";
import { readPodmanConnection } from "./podman-connections.ts";

export interface DiscoverInputs extends CandidateInputs {
  readonly signal?: AbortSignal | undefined;
}

export interface DiscoveredEngine {
  readonly client: EngineClient;
  /** Who named the place: a flag, a file, a variable, or `default`. */
  readonly origin: string;
}

/**
 * Finds the engine to use and makes sure that it answers. One that the owner has named is that one or an error;
 * otherwise the usual places are tried in turn.
 */
export async function discoverEngine(inputs: DiscoverInputs): Promise<DiscoveredEngine> {
  const named = namedCandidate(inputs);
  if (named !== null) {
    try {
      return await tryCandidate(named, inputs);
    } catch (error) {
      throw withOrigin(error, named);
    }
  }
  const connection = await readPodmanConnection(inputs.env, inputs.home);
  const candidates = [...(connection === null ? [] : [connection]), ...defaultCandidates(inputs)];
  const failures: Failure[] = [];
  for (const candidate of candidates) {
    try {
      return await tryCandidate(candidate, inputs);
    } catch (error) {
      if (!(error instanceof PodbotError)) throw error;
      failures.push({ candidate, error });
    }
  }
  throw notFound(failures);
}

async function tryCandidate(candidate: Candidate, inputs: DiscoverInputs): Promise<DiscoveredEngine> {
  const { text, origin, tls, certificates, identity } = candidate;
  const endpoint = parseEndpoint(text, { tls });
  if (!candidate.named) checkOwner(endpoint, inputs.uid);
  const client = connectEngine(endpoint, { certificates, identity, env: inputs.env });
  try {
    await ping(client, { signal: inputs.signal });
    return { client, origin };
  } catch (error) {
    client[Symbol.dispose]();
    throw error;
  }
}

/** After `sudo`, XDG_RUNTIME_DIR may be another user's: whoever owns the engine sees all that is done with it. */
function checkOwner(endpoint: Endpoint, uid: number): void {
  if (endpoint.kind !== "unix") return;
  let owner: number | undefined;
  try {
    owner = statSync(endpoint.path).uid;
  } catch {
    // Whoever connects says why.
    return;
  }
  if (owner === uid || owner === 0) return;
  throw new EngineError("ENGINE_PERMISSION_DENIED", `The engine socket ${endpoint.path} belongs to user ${owner}.`, {
    hint: "Name it with engine_socket or --engine-socket if it is the one you want.",
    details: { path: endpoint.path, owner },
  });
}

function withOrigin(error: unknown, { origin, text }: Candidate): unknown {
  if (!(error instanceof PodbotError)) return error;
  const family = error.constructor as typeof PodbotError;
  return new family(error.code, `${error.message} It was named by ${origin}.`, {
    ...(error.hint === undefined ? {} : { hint: error.hint }),
    details: { ...error.details, origin, text: error.details["text"] ?? text },
    cause: error,
  });
}

interface Failure {
  readonly candidate: Candidate;
  readonly error: PodbotError;
}

function notFound(failures: readonly Failure[]): EngineError {
  const tried = failures.map(({ candidate, error }) => ({
    place: candidate.text,
    origin: candidate.origin,
    code: error.code,
    reason: error.message,
  }));
  const lines = tried.map(
    ({ place, code, reason }) => `  ${place}: ${code === "ENGINE_SOCKET_NOT_FOUND" ? "not there" : reason}`,
  );
  return new EngineError("ENGINE_NOT_FOUND", `No container engine answers. Tried:\n${lines.join("\n")}`, {
    hint: "Install Podman (Debian or Ubuntu: apt install podman · Fedora: dnf install podman · Arch: pacman -S podman) and start its socket with `systemctl --user enable --now podman.socket`, or name an engine with --engine-socket.",
    details: { tried },
    cause: new AggregateError(failures.map(({ error }) => error)),
  });
}
