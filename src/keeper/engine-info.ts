import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { EngineClient } from "../engine/client.ts";
import { endpointText } from "../engine/endpoint.ts";
import { type EngineInfo, engineInfo } from "../engine/info.ts";
import { thisHost } from "../machine/host.ts";

/**
 * What an engine is and can do. Podman takes half a second to say so, which is longer than a container takes to start;
 * so it is asked once for each time that its socket was made.
 */
export async function knownInfo(client: EngineClient, directory: string): Promise<EngineInfo> {
  const mark = markOf(client);
  if (mark === null) return engineInfo(client);
  const path = join(directory, `${createHash("sha256").update(mark).digest("hex").slice(0, 16)}.json`);
  const known = read(path, mark);
  if (known !== null) return known;
  const info = await engineInfo(client);
  remember(directory, path, { mark, info });
  return info;
}

/** Who made the socket, and when. A service that starts anew makes it anew. */
function markOf({ endpoint }: EngineClient): string | null {
  if (endpoint.kind !== "unix") return null;
  try {
    const { dev, ino, mtimeMs, birthtimeMs } = statSync(endpoint.path);
    return [format, endpointText(endpoint), dev, ino, mtimeMs, birthtimeMs].join(" ");
  } catch {
    return null;
  }
}

/** Changes when `EngineInfo` does. */
const format = "2";

/** Behind a socket that systemd holds, the engine's settings can change without a trace. */
const longestMs = 3_600_000;

function read(path: string, mark: string): EngineInfo | null {
  try {
    if (Date.now() - statSync(path).mtimeMs > longestMs) return null;
    const known = JSON.parse(readFileSync(path, "utf8")) as { readonly mark: unknown; readonly info: EngineInfo };
    return known.mark === mark ? known.info : null;
  } catch {
    return null;
  }
}

/** Only a saving of time: where it cannot be kept, the engine is asked again. */
function remember(directory: string, path: string, known: object): void {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const half = `${path}.${thisHost().pid}`;
    writeFileSync(half, JSON.stringify(known), { mode: 0o600 });
    renameSync(half, path);
  } catch {}
}
