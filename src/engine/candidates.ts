import { join } from "node:path";
import { recordOf, stringOf } from "./shape.ts";
import type { Environment } from "./transport.ts";

/** A place where an engine may be. */
export interface Candidate {
  /** The engine's address. */
  readonly text: string;
  /** Who says so, as the owner knows it: `--engine-socket`, `DOCKER_HOST`, `default`. */
  readonly origin: string;
  /** Whether the owner has named it. Then it is this one or none: no other engine is a substitute. */
  readonly named: boolean;
  /** Whether `tcp://` means TLS. */
  readonly tls: boolean;
  /** The directory of the certificates for TLS. */
  readonly certificates: string | null;
  /** A private key for ssh. */
  readonly identity: string | null;
}

export interface CandidateInputs {
  /** What the owner has configured by flag, file or PODBOT_ENGINE_SOCKET, and where. */
  readonly configured?: { readonly text: string; readonly origin: string } | null;
  readonly env: Environment;
  readonly home: string | null;
  readonly uid: number;
  /** What the machine's own places lie under. Default: /. */
  readonly root?: string;
}

const variables = ["DOCKER_HOST", "CONTAINER_HOST", "PODMAN_HOST"] as const;

/** The place that the owner has named, or null. Empty values name nothing. */
export function namedCandidate({ configured, env, home }: CandidateInputs): Candidate | null {
  const named = [
    configured ?? { text: "", origin: "" },
    ...variables.map((name) => ({ text: env[name] ?? "", origin: name })),
  ];
  const first = named.find(({ text }) => text !== "");
  if (first === undefined) return null;
  return {
    ...first,
    named: true,
    ...tlsSettings(env, home),
    identity: first.origin === "CONTAINER_HOST" ? set(env["CONTAINER_SSHKEY"]) : null,
  };
}

/** How Docker's clients would dial a `tcp://` address, and with which certificates. */
export function tlsSettings(env: Environment, home: string | null): Pick<Candidate, "tls" | "certificates"> {
  const verify = set(env["DOCKER_TLS_VERIFY"]);
  const certificates = set(env["DOCKER_CERT_PATH"]);
  const byDefault = verify !== null && home !== null ? join(home, ".docker") : null;
  return { tls: verify !== null || certificates !== null, certificates: certificates ?? byDefault };
}

/** Where engines listen unless told otherwise: the user's own before the machine's. */
export function defaultCandidates({ env, home, uid, root = "/" }: CandidateInputs): readonly Candidate[] {
  const runtime = set(env["XDG_RUNTIME_DIR"]);
  const own = [...(runtime === null ? [] : [runtime]), join(root, "run/user", String(uid))];
  const paths = [
    ...own.map((directory) => join(directory, "podman/podman.sock")),
    ...own.map((directory) => join(directory, "docker.sock")),
    ...(home === null ? [] : [join(home, ".docker/run/docker.sock")]),
    join(root, "run/podman/podman.sock"),
    join(root, "var/run/docker.sock"),
  ];
  return [...new Set(paths)].map((text) => ({ ...unnamed, text, origin: "default" }));
}

const unnamed = { named: false, tls: false, certificates: null, identity: null } as const;

/** The connection that `podman --remote` uses, of podman-connections.json or else of a parsed containers.conf. */
export function podmanConnection(json: unknown, conf: unknown): Candidate | null {
  const { Default, Connections } = recordOf(recordOf(json)["Connection"]);
  const engine = recordOf(recordOf(conf)["engine"]);
  const found = [
    {
      name: stringOf(Default),
      fields: recordOf(recordOf(Connections)[stringOf(Default)]),
      uri: "URI",
      identity: "Identity",
    },
    {
      name: stringOf(engine["active_service"]),
      fields: recordOf(recordOf(engine["service_destinations"])[stringOf(engine["active_service"])]),
      uri: "uri",
      identity: "identity",
    },
  ].find(({ fields, uri }) => stringOf(fields[uri]) !== "");
  if (found === undefined) return null;
  const { name, fields, uri, identity } = found;
  return {
    ...unnamed,
    text: stringOf(fields[uri]),
    origin: `podman connection ${name}`,
    identity: set(stringOf(fields[identity])),
  };
}

function set(value: string | undefined): string | null {
  return value === undefined || value === "" ? null : value;
}
