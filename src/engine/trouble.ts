import { EngineError } from "../errors.ts";
import { type Endpoint, endpointText } from "./endpoint.ts";

/** A connection that could not be made or that broke, as the owner should hear of it. */
export function connectionTrouble(endpoint: Endpoint, cause: unknown, words?: string): EngineError {
  const { code } = cause as NodeJS.ErrnoException;
  if (endpoint.kind === "unix" && (code === "ENOENT" || code === "ENOTDIR")) return socketMissing(endpoint.path, cause);
  if (endpoint.kind === "unix" && (code === "EACCES" || code === "EPERM")) return socketDenied(endpoint.path, cause);
  const place = endpointText(endpoint);
  const said = words === undefined || words === "" ? reasonOf(cause) : words;
  return new EngineError("ENGINE_CONNECTION_FAILED", `The engine at ${place} cannot be reached: ${said}.`, {
    hint: hintFor(endpoint, code),
    details: { endpoint: place, ...(code === undefined ? {} : { reason: code }) },
    cause,
  });
}

function socketMissing(path: string, cause: unknown): EngineError {
  return new EngineError("ENGINE_SOCKET_NOT_FOUND", `There is no engine socket at ${path}.`, {
    hint: `${isPodman(path) ? `Start Podman's: ${podmanHint(path)}.` : "Start the engine: `sudo systemctl start docker`."} Or name another with engine_socket or --engine-socket.`,
    details: { path },
    cause,
  });
}

function socketDenied(path: string, cause: unknown): EngineError {
  return new EngineError("ENGINE_PERMISSION_DENIED", `The engine socket ${path} may not be used by this user.`, {
    hint: isPodman(path)
      ? "Use Podman's socket of your own: `systemctl --user enable --now podman.socket`."
      : "Join its group (`sudo usermod -aG docker $USER`, then log in again; members are as mighty as root), or use Podman's socket of your own: `systemctl --user enable --now podman.socket`.",
    details: { path },
    cause,
  });
}

function hintFor(endpoint: Endpoint, code: string | undefined): string {
  switch (endpoint.kind) {
    case "unix":
      return code === "ECONNREFUSED"
        ? `Nobody listens at this socket any more. Start the engine again${isPodman(endpoint.path) ? `: ${podmanHint(endpoint.path)}` : ""}.`
        : "See whether the engine runs, and what its log says.";
    case "ssh":
      return "Try the same with `ssh` by hand: Podbot asks no questions, so keys and known hosts must be in place.";
    case "https":
      return "The server's certificate must fit its name and an authority in ca.pem; DOCKER_CERT_PATH names the directory with ca.pem, cert.pem and key.pem.";
    default:
      return "See whether the engine listens there, and whether a firewall stands between.";
  }
}

function isPodman(path: string): boolean {
  return path.includes("podman");
}

/** Systemd stops a socket that fails too often ("trigger-limit-hit") until it is told to forget. */
function podmanHint(path: string): string {
  const systemctl = path.startsWith("/run/podman/") ? "sudo systemctl" : "systemctl --user";
  return `\`${systemctl} enable --now podman.socket\` (if it has failed: \`${systemctl} reset-failed podman.socket podman.service\` first)`;
}

/** The first line, without the full stop that the sentence brings along. */
export function reasonOf(cause: unknown): string {
  const { message, code, errors } = cause as NodeJS.ErrnoException & { errors?: readonly Error[] };
  // Several addresses of one name fail together, in an error without a message.
  const text = message || errors?.map((error) => error.message).join("; ") || code || String(cause);
  return text.split("\n", 1)[0]?.replace(/\.$/, "") ?? "";
}
