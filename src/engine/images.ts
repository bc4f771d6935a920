import type { EngineClient } from "./client.ts";
import type { CallOptions } from "./containers.ts";
import { labelsOf, numberOf, recordOf, stringOf, stringsOf } from "./shape.ts";

export interface ImageInspection {
  readonly id: string;
  /** `NAME=VALUE`, as the image has them. */
  readonly env: readonly string[];
  readonly user: string;
  readonly workingDir: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Paths that each container gets an anonymous volume at. */
  readonly volumes: readonly string[];
  readonly entrypoint: readonly string[];
  readonly cmd: readonly string[];
  readonly architecture: string;
  /** In bytes, with everything below it. */
  readonly size: number;
}

/** Null where the engine does not have the image. Nothing is pulled. */
export async function inspectImage(
  client: EngineClient,
  name: string,
  options: CallOptions = {},
): Promise<ImageInspection | null> {
  const path = imagePath(name, "/json");
  if (path === null) return null;
  const answer = await client.request({ ...options, method: "GET", path, accept: [404] });
  if (answer.status === 404) {
    await answer.discard();
    return null;
  }
  const { Id, Config, Architecture, Size } = recordOf(await answer.json());
  const config = recordOf(Config);
  return {
    id: stringOf(Id),
    env: stringsOf(config["Env"]),
    user: stringOf(config["User"]),
    workingDir: stringOf(config["WorkingDir"]),
    labels: labelsOf(config["Labels"]),
    volumes: Object.keys(recordOf(config["Volumes"])),
    entrypoint: stringsOf(config["Entrypoint"]),
    cmd: stringsOf(config["Cmd"]),
    architecture: stringOf(Architecture),
    size: numberOf(Size),
  };
}

/** Null for what can be no image's name: dots would be resolved as in a path. */
export function imagePath(name: string, rest = ""): string | null {
  const parts = name.split("/");
  if (parts.some((part) => part === "" || part === "." || part === "..")) return null;
  return `/images/${parts.map(encodeURIComponent).join("/")}${rest}`;
}
