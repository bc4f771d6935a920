import { isIP } from "node:net";
import { ConfigError } from "../errors.ts";

/** Where an engine listens. */
export type Endpoint =
  | { readonly kind: "unix"; readonly path: string }
  | { readonly kind: "http" | "https"; readonly host: string; readonly port: number }
  | {
      readonly kind: "ssh";
      readonly user: string | null;
      readonly host: string;
      readonly port: number | null;
      /** The engine's socket on the far side, or null for whatever `docker` talks to there. */
      readonly path: string | null;
    }
  | { readonly kind: "npipe"; readonly path: string };

export interface EndpointOptions {
  /** Whether `tcp://` means TLS, as it does for Docker where DOCKER_TLS_VERIFY or DOCKER_CERT_PATH is set. */
  readonly tls?: boolean;
}

const ports = { http: 2375, https: 2376 } as const;

/** Reads an engine's address by its syntax alone, whatever the platform. Throws where it could mean two things. */
export function parseEndpoint(text: string, { tls = false }: EndpointOptions = {}): Endpoint {
  if (text === "") throw refused(text, "it is empty");
  if (hasControls(text)) throw refused(text, "it holds a control character");
  const [, scheme, rest = ""] = /^([a-z][a-z0-9+.-]*):\/\/(.*)$/i.exec(text) ?? [];
  switch (scheme?.toLowerCase()) {
    case undefined:
      return text.startsWith("\\\\") || text.startsWith("//") ? { kind: "npipe", path: text } : parseUnix(text, text);
    case "unix":
      return parseUnix(text, rest);
    case "npipe":
      if (rest === "") throw refused(text, "the path of the pipe is missing");
      return { kind: "npipe", path: rest };
    case "tcp":
      return parseHttp(text, tls ? "https" : "http", rest);
    case "http":
      return parseHttp(text, "http", rest);
    case "https":
      return parseHttp(text, "https", rest);
    case "ssh":
      return parseSsh(text, rest);
    default:
      throw refused(text, `"${scheme}" is not a way to reach an engine`);
  }
}

/** The one spelling of an endpoint; reading it gives the same endpoint back. */
export function endpointText(endpoint: Endpoint): string {
  switch (endpoint.kind) {
    case "unix":
    case "npipe":
      return `${endpoint.kind}://${endpoint.path}`;
    case "http":
    case "https":
      return `${endpoint.kind}://${bracketed(endpoint.host)}:${endpoint.port}`;
    case "ssh": {
      const { user, host, port, path } = endpoint;
      return `ssh://${user === null ? "" : `${user}@`}${bracketed(host)}${port === null ? "" : `:${port}`}${path ?? ""}`;
    }
  }
}

/** Whether paths on this machine are paths of the engine: it can only be asked to mount what it sees. */
export function isLocal(endpoint: Endpoint): boolean {
  if (endpoint.kind === "unix") return true;
  if (endpoint.kind !== "http" && endpoint.kind !== "https") return false;
  const { host } = endpoint;
  return host.toLowerCase() === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}

function parseUnix(text: string, path: string): Endpoint {
  if (path === "") throw refused(text, "the path of the socket is missing");
  if (!path.startsWith("/")) throw refused(text, "the path of the socket is not absolute");
  return { kind: "unix", path };
}

function parseHttp(text: string, kind: "http" | "https", rest: string): Endpoint {
  const { user, host, port, path } = splitAuthority(text, rest);
  if (user !== null) throw refused(text, "names and passwords in the address are not sent to engines");
  if (path !== "" && path !== "/") throw refused(text, "an engine's address has no path");
  return { kind, host, port: port ?? ports[kind] };
}

function parseSsh(text: string, rest: string): Endpoint {
  const { user, host, port, path } = splitAuthority(text, rest);
  // Both become arguments of ssh, and a leading dash would make them options.
  if (user !== null && !/^[A-Za-z0-9_.+][A-Za-z0-9_.+-]*$/.test(user)) throw refused(text, "the user's name is odd");
  if (path === "" || path === "/") return { kind: "ssh", user, host, port, path: null };
  // To ssh, colons divide and percent and dollar signs are replaced.
  if (!/^[A-Za-z0-9_./@+,=~-]+$/.test(path))
    throw refused(text, "the path holds characters that ssh would not pass on");
  return { kind: "ssh", user, host, port, path };
}

interface Authority {
  readonly user: string | null;
  readonly host: string;
  readonly port: number | null;
  readonly path: string;
}

function splitAuthority(text: string, rest: string): Authority {
  if (/[?#]/.test(rest)) throw refused(text, "an engine's address has no query and no fragment");
  const [authority = ""] = rest.split("/", 1);
  const path = rest.slice(authority.length);
  const at = authority.lastIndexOf("@");
  const [, bracket, plain, digits] = /^(?:\[([^\]]*)\]|([^:]*))(?::([^:]*))?$/.exec(authority.slice(at + 1)) ?? [];
  return {
    user: at === -1 ? null : authority.slice(0, at),
    host: checkHost(text, bracket, plain),
    port: digits === undefined ? null : parsePort(text, digits),
    path,
  };
}

function checkHost(text: string, bracket: string | undefined, plain: string | undefined): string {
  if (bracket !== undefined) {
    if (isIP(bracket) !== 6) throw refused(text, "what stands in brackets is not an IPv6 address");
    return bracket;
  }
  if (plain === undefined) throw refused(text, "the host is not a name; an IPv6 address stands in brackets");
  if (plain === "") throw refused(text, "the host is missing");
  if (!/^[A-Za-z0-9_][A-Za-z0-9_.-]*$/.test(plain)) throw refused(text, "the host is not a name");
  return plain;
}

function parsePort(text: string, digits: string): number {
  const port = /^[0-9]{1,5}$/.test(digits) ? Number(digits) : 0;
  if (port < 1 || port > 65_535) throw refused(text, "the port is not a number from 1 to 65535");
  return port;
}

function bracketed(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}

function hasControls(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  return /[\u0000-\u001f\u007f]/.test(text);
}

/** What stands before an `@` may be a password. */
function refused(text: string, why: string): ConfigError {
  const shown = JSON.stringify(text.replace(/\/\/[^/]*@/, "//…@"));
  return new ConfigError("CONFIG_INVALID", `${shown} is not an engine's address: ${why}.`, {
    hint: "Write unix:///run/podman/podman.sock, tcp://HOST:2375, https://HOST:2376, ssh://USER@HOST, or the absolute path of a socket.",
    details: { text: text.replace(/\/\/[^/]*@/, "//…@") },
  });
}
