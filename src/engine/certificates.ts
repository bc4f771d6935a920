import { readFileSync } from "node:fs";
import { Agent } from "node:https";
import { join } from "node:path";
import { EngineError } from "../errors.ts";
import { type Endpoint, endpointText } from "./endpoint.ts";
import { idleMs } from "./transport.ts";
import { reasonOf } from "./trouble.ts";

/** TLS as Docker's clients speak it. The server is verified always; there is no option that says otherwise. */
export function secureAgent(endpoint: Endpoint, directory: string | null): Agent {
  const material = directory === null ? {} : readMaterial(endpoint, directory);
  try {
    return new Agent({
      ...material,
      keepAlive: true,
      timeout: idleMs,
      rejectUnauthorized: true,
      minVersion: "TLSv1.2",
    });
  } catch (error) {
    throw unusable(endpoint, `what lies in ${directory} is not usable (${reasonOf(error)})`, error);
  }
}

interface Material {
  readonly ca: Buffer;
  readonly cert: Buffer;
  readonly key: Buffer;
}

/** All three must be there: whoever names the directory means them, and a guess would weaken one side. */
function readMaterial(endpoint: Endpoint, directory: string): Material {
  const read = (name: string) => {
    try {
      return readFileSync(join(directory, name));
    } catch (error) {
      throw unusable(endpoint, `${join(directory, name)} cannot be read (${reasonOf(error)})`, error);
    }
  };
  return { ca: read("ca.pem"), cert: read("cert.pem"), key: read("key.pem") };
}

function unusable(endpoint: Endpoint, why: string, cause: unknown): EngineError {
  const place = endpointText(endpoint);
  return new EngineError("ENGINE_CONNECTION_FAILED", `The engine at ${place} cannot be reached: ${why}.`, {
    hint: "DOCKER_CERT_PATH names a directory with ca.pem, cert.pem and key.pem; unset it to use the system's authorities and no certificate of your own.",
    details: { endpoint: place },
    cause,
  });
}
