import { accessSync, constants, statSync } from "node:fs";
import { Agent, request } from "node:http";
import { request as secureRequest } from "node:https";
import { EngineError } from "../errors.ts";
import { openSocketPath } from "../machine/socket-path.ts";
import { secureAgent } from "./certificates.ts";
import { type Endpoint, endpointText } from "./endpoint.ts";
import { openSsh } from "./ssh.ts";
import { type Environment, idleMs, type Transport } from "./transport.ts";
import { connectionTrouble } from "./trouble.ts";

export interface TransportOptions {
  /** The directory with ca.pem, cert.pem and key.pem, as DOCKER_CERT_PATH names it. Default: the system's authorities. */
  readonly certificates?: string | null;
  /** What `ssh` is found with and gets. Only needed for ssh. */
  readonly env?: Environment;
  /** A private key for ssh, beside those that it finds itself. */
  readonly identity?: string | null;
}

/** Sockets are looked at now; what is reached over a network is not dialled before the first request. */
export function openTransport(endpoint: Endpoint, options: TransportOptions): Transport {
  switch (endpoint.kind) {
    case "unix":
      return openUnix(endpoint);
    case "http":
    case "https":
      return openTcp(endpoint, options.certificates ?? null);
    case "ssh":
      return openSsh(endpoint, { env: options.env ?? {}, identity: options.identity ?? null });
    case "npipe":
      throw new EngineError(
        "ENGINE_CONNECTION_FAILED",
        `${endpointText(endpoint)} is a named pipe, which Linux has not.`,
        {
          hint: "Name a Unix socket, for example unix:///run/podman/podman.sock.",
          details: { endpoint: endpointText(endpoint) },
        },
      );
  }
}

function openUnix(endpoint: Endpoint & { kind: "unix" }): Transport {
  const agent = new Agent({ keepAlive: true, timeout: idleMs });
  try {
    if (!statSync(endpoint.path).isSocket()) throw notSocket(endpoint);
    accessSync(endpoint.path, constants.R_OK | constants.W_OK);
    const place = openSocketPath(endpoint.path);
    return {
      // Without a name for TLS, which there is none of here, the agent does not look for one either: that takes 5 ms.
      target: () => ({ agent, socketPath: place.address, servername: "" }),
      request,
      explain: (error) => connectionTrouble(endpoint, error),
      [Symbol.dispose]() {
        agent.destroy();
        place[Symbol.dispose]();
      },
    };
  } catch (error) {
    throw error instanceof EngineError ? error : connectionTrouble(endpoint, error);
  }
}

function notSocket(endpoint: Endpoint & { kind: "unix" }): EngineError {
  return new EngineError("ENGINE_CONNECTION_FAILED", `${endpoint.path} is not a socket.`, {
    hint: "Name the socket that the engine listens on.",
    details: { path: endpoint.path },
  });
}

function openTcp(endpoint: Endpoint & { kind: "http" | "https" }, certificates: string | null): Transport {
  const { kind, host, port } = endpoint;
  let agent: Agent | undefined;
  const makeAgent = () =>
    kind === "https" ? secureAgent(endpoint, certificates) : new Agent({ keepAlive: true, timeout: idleMs });
  return {
    target: () => {
      agent ??= makeAgent();
      return { agent, host, port };
    },
    request: kind === "https" ? (secureRequest as typeof request) : request,
    explain: (error) => connectionTrouble(endpoint, error),
    [Symbol.dispose]: () => agent?.destroy(),
  };
}
